// The stock client: fetches a paid resource, and once more if the answer is lost. Prints what happened.
import { ExactEvmScheme } from "@x402/evm";
import { wrapFetchWithPaymentFromConfig } from "@x402/fetch";
import { privateKeyToAccount } from "viem/accounts";

const [url, key] = process.argv.slice(2);
const client = new ExactEvmScheme(privateKeyToAccount(key));
const pay = wrapFetchWithPaymentFromConfig(fetch, { schemes: [{ network: "eip155:8453", client }] });
for (let attempt = 1; attempt <= 2; attempt++) {
  try {
    const response = await pay(url);
    console.log(JSON.stringify({ attempt, status: response.status }));
    if (response.ok) break;
  } catch (error) {
    console.log(JSON.stringify({ attempt, error: String(error.message ?? error) }));
  }
}
