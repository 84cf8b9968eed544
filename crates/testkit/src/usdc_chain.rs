//! A chain on loopback with Circle's USDC at Base's own address: anvil, started for one test.
//!
//! `cargo xtask peers` installs anvil and the compiled contracts into the build folder. They are never
//! committed.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use alloy_primitives::{Address, B256, U256, address, hex, keccak256};
use alloy_sol_types::{SolCall, sol};
use serde_json::{Value, json};

sol! {
    function initialize(
        string tokenName,
        string tokenSymbol,
        string tokenCurrency,
        uint8 tokenDecimals,
        address newMasterMinter,
        address newPauser,
        address newBlacklister,
        address newOwner
    ) external;
    function initializeV2(string newName) external;
    function initializeV2_1(address lostAndFound) external;
    function initializeV2_2(address[] accountsToBlacklist, string newSymbol) external;
    function configureMinter(address minter, uint256 minterAllowedAmount) external returns (bool);
    function mint(address to, uint256 amount) external returns (bool);
    function blacklist(address account) external;
    function balanceOf(address owner) external view returns (uint256);
}

/// The address of USDC on Base.
pub const USDC: Address = address!("833589fCD6eDb6E08f4c7C32D4f71b54bdA02913");
/// The first account of anvil, whose key anvil holds. It owns the token.
const OWNER: Address = address!("f39Fd6e51aad88F6F4ce6aB8827279cffFb92266");
/// May only change the implementation of the token.
const PROXY_ADMIN: Address = address!("70997970C51812dc3A010C7d01b50e0d17dc79C8");

/// The block with a transaction is made after the answer to it.
const MINED_WITHIN: Duration = Duration::from_secs(20);

/// A running chain. If it was started with this value, it ends with it.
pub struct UsdcChain {
    child: Option<Child>,
    pub port: u16,
}

/// Returns the folder of the installed peers.
///
/// # Panics
/// If they are not installed.
#[expect(
    clippy::panic,
    reason = "a test without its peers fails with the way to install them"
)]
pub fn payment_peers() -> PathBuf {
    let program = std::env::current_exe().unwrap_or_default();
    let set = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    let target = program.ancestors().skip(2).map(Path::to_path_buf);
    let found = set
        .into_iter()
        .chain(target)
        .map(|folder| folder.join("peers/payments"))
        .find(|folder| folder.join("usdc/FiatTokenV2_2.json").exists());
    match found {
        Some(folder) => folder,
        None => panic!(
            "anvil and the USDC contract are not installed; run `cargo xtask peers` (needs npm)"
        ),
    }
}

#[expect(clippy::panic, reason = "a test without its chain fails")]
impl UsdcChain {
    /// Starts chain 8453 with USDC.
    ///
    /// # Panics
    /// If the chain does not start.
    pub fn start() -> Self {
        Self::start_on(0)
    }

    /// Starts it on a port of this machine; 0 for any.
    ///
    /// # Panics
    /// If the chain does not start.
    pub fn start_on(port: u16) -> Self {
        let peers = payment_peers();
        let chain = Self::spawn(&peers, port);
        chain.deploy(&peers.join("usdc"));
        chain
    }

    /// Uses a chain that another process started.
    pub fn connect(port: u16) -> Self {
        Self { child: None, port }
    }

    fn spawn(peers: &Path, port: u16) -> Self {
        let scope = peers.join("node_modules/@foundry-rs");
        let packages = fs::read_dir(scope).into_iter().flatten().flatten();
        let program = packages
            .map(|package| package.path().join("bin/anvil"))
            .find(|program| program.exists() && !program.to_string_lossy().contains("/anvil/"))
            .unwrap_or_else(|| panic!("anvil is not installed; run `cargo xtask peers`"));
        let mut child = Command::new(program)
            .args(["--chain-id", "8453", "--host", "127.0.0.1"])
            .args(["--port", &port.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("anvil does not start: {error}"));
        let output = child.stdout.take();
        let lines = output
            .map(BufReader::new)
            .into_iter()
            .flat_map(BufRead::lines);
        let mut port = None;
        let mut lines = lines.map_while(Result::ok);
        for line in &mut lines {
            if let Some(address) = line.strip_prefix("Listening on ") {
                port = address
                    .rsplit(':')
                    .next()
                    .and_then(|port| port.trim().parse().ok());
                break;
            }
        }
        let port = port.unwrap_or_else(|| panic!("anvil does not listen"));
        // The rest of the output is read, or anvil would stop when the pipe is full.
        std::thread::spawn(move || lines.for_each(drop));
        let child = Some(child);
        Self { child, port }
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Calls a method of the node.
    ///
    /// # Panics
    /// If the node refuses it.
    pub fn rpc(&self, method: &str, params: Value) -> Value {
        let answer = self.try_rpc(method, params);
        match answer.get("error") {
            Some(error) => panic!("{method}: {error}"),
            None => answer["result"].clone(),
        }
    }

    /// Calls a method of the node and returns the whole answer.
    pub fn try_rpc(&self, method: &str, params: Value) -> Value {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        post(self.port, &body.to_string())
            .and_then(|answer| serde_json::from_str(&answer).map_err(std::io::Error::other))
            .unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    /// Gives an account USDC (in millionths) and one ETH.
    pub fn fund(&self, account: Address, usdc: u64) {
        self.rpc("anvil_setBalance", json!([account, "0xde0b6b3a7640000"]));
        let mint = mintCall {
            to: account,
            amount: U256::from(usdc),
        };
        self.transact(Some(USDC), &mint.abi_encode());
    }

    /// Makes the token refuse an account.
    pub fn block_account(&self, account: Address) {
        self.transact(Some(USDC), &blacklistCall { account }.abi_encode());
    }

    /// Returns the USDC of an account, in millionths.
    pub fn balance(&self, owner: Address) -> u64 {
        let input = hex::encode_prefixed(balanceOfCall { owner }.abi_encode());
        let answer = self.rpc(
            "eth_call",
            json!([{ "to": USDC, "input": input }, "latest"]),
        );
        let digits = answer.as_str().unwrap_or("0x").trim_start_matches("0x");
        u64::from_str_radix(digits.trim_start_matches('0'), 16).unwrap_or_default()
    }

    /// Puts all waiting transactions into a block.
    pub fn mine(&self) {
        self.rpc("evm_mine", json!([]));
    }

    pub fn set_automine(&self, is_on: bool) {
        self.rpc("evm_setAutomine", json!([is_on]));
    }

    /// Moves the chain's clock forward.
    pub fn pass_time(&self, time: Duration) {
        self.rpc("evm_increaseTime", json!([time.as_secs()]));
        self.mine();
    }

    /// Deploys the token as on Base: Circle's implementation behind Circle's proxy.
    fn deploy(&self, contracts: &Path) {
        let checker = self.deploy_code(&code(contracts, "SignatureChecker", "bytecode"));
        let implementation = link(contracts, "FiatTokenV2_2", checker);
        let implementation = self.deploy_code(&implementation);
        let proxy = code(contracts, "FiatTokenProxy", "deployedBytecode");
        self.rpc("anvil_setCode", json!([USDC, proxy]));
        for (slot, value) in [
            ("org.zeppelinos.proxy.implementation", implementation),
            ("org.zeppelinos.proxy.admin", PROXY_ADMIN),
        ] {
            let (slot, value): (B256, B256) = (keccak256(slot), value.into_word());
            self.rpc("anvil_setStorageAt", json!([USDC, slot, value]));
        }
        let first = initializeCall {
            tokenName: "USD Coin".to_owned(),
            tokenSymbol: "USDC".to_owned(),
            tokenCurrency: "USD".to_owned(),
            tokenDecimals: 6,
            newMasterMinter: OWNER,
            newPauser: OWNER,
            newBlacklister: OWNER,
            newOwner: OWNER,
        };
        let calls = [
            first.abi_encode(),
            initializeV2Call {
                newName: "USD Coin".to_owned(),
            }
            .abi_encode(),
            initializeV2_1Call {
                lostAndFound: OWNER,
            }
            .abi_encode(),
            initializeV2_2Call {
                accountsToBlacklist: Vec::new(),
                newSymbol: "USDC".to_owned(),
            }
            .abi_encode(),
            configureMinterCall {
                minter: OWNER,
                minterAllowedAmount: U256::from(u64::MAX),
            }
            .abi_encode(),
        ];
        for call in calls {
            self.transact(Some(USDC), &call);
        }
    }

    fn deploy_code(&self, code: &str) -> Address {
        let receipt = self.transact(None, &hex::decode(code).unwrap_or_default());
        let address = receipt["contractAddress"].as_str().unwrap_or_default();
        address
            .parse()
            .unwrap_or_else(|_| panic!("the contract was not deployed: {receipt}"))
    }

    /// Sends a transaction of the token's owner and returns its receipt.
    fn transact(&self, to: Option<Address>, input: &[u8]) -> Value {
        let mut call =
            json!({ "from": OWNER, "input": hex::encode_prefixed(input), "gas": "0x989680" });
        if let Some(to) = to {
            call["to"] = json!(to);
        }
        let hash = self.rpc("eth_sendTransaction", json!([call]));
        let started = Instant::now();
        let receipt = loop {
            let receipt = self.rpc("eth_getTransactionReceipt", json!([hash]));
            if !receipt.is_null() || started.elapsed() > MINED_WITHIN {
                break receipt;
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        assert_eq!(receipt["status"], "0x1", "{receipt}");
        receipt
    }
}

impl Drop for UsdcChain {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

#[expect(clippy::panic, reason = "a test without its contracts fails")]
fn artifact(contracts: &Path, name: &str) -> Value {
    let text = fs::read_to_string(contracts.join(format!("{name}.json")));
    let value = text.ok().and_then(|text| serde_json::from_str(&text).ok());
    value.unwrap_or_else(|| panic!("{name} cannot be read; run `cargo xtask peers`"))
}

fn code(contracts: &Path, name: &str, field: &str) -> String {
    artifact(contracts, name)[field]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

/// Returns the code of a contract with the address of its only library.
fn link(contracts: &Path, name: &str, library: Address) -> String {
    let artifact = artifact(contracts, name);
    let mut code = artifact["bytecode"].as_str().unwrap_or_default().to_owned();
    let files = artifact["linkReferences"].as_object().into_iter().flatten();
    let libraries = files
        .filter_map(|(_, libraries)| libraries.as_object())
        .flatten();
    for place in libraries
        .filter_map(|(_, places)| places.as_array())
        .flatten()
    {
        let start = place["start"].as_u64().unwrap_or_default() as usize;
        let start = 2 + 2 * start;
        code.replace_range(start..start + 40, &hex::encode(library));
    }
    code
}

/// Posts JSON to a port of this machine.
fn post(port: u16, body: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(Duration::from_secs(30)))?;
    let length = body.len();
    write!(
        stream,
        "POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let body = answer
        .split_once("\r\n\r\n")
        .map(|(_, body)| body.to_owned());
    body.ok_or_else(|| std::io::Error::other("no answer"))
}
