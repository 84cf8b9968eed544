//! Storage of payments, payees and watched wallets.

mod address_book;
mod ledger;
mod rows;

pub(crate) const TABLES: &str = "
    -- One row per payment. Everything that is signed is fixed when the row is inserted.
    CREATE TABLE payments (
        id TEXT PRIMARY KEY,
        principal TEXT NOT NULL,
        request TEXT NOT NULL,
        created TEXT NOT NULL,
        chain INTEGER NOT NULL,
        sender TEXT NOT NULL,
        recipient TEXT NOT NULL,
        payee TEXT,
        amount INTEGER NOT NULL,
        purpose TEXT NOT NULL,
        origin TEXT NOT NULL,
        valid_before INTEGER NOT NULL,
        digest TEXT NOT NULL,
        fee_limit INTEGER NOT NULL,
        answer_by TEXT NOT NULL,
        start_block INTEGER NOT NULL,
        state TEXT NOT NULL,
        updated TEXT NOT NULL,
        signature BLOB,
        message BLOB,
        account_nonce INTEGER,
        transaction_hash TEXT,
        block INTEGER,
        reason TEXT,
        is_delivered INTEGER NOT NULL DEFAULT 0,
        UNIQUE (principal, request)
    ) STRICT;
    CREATE INDEX payments_by_time ON payments (principal, created);
    CREATE INDEX open_payments ON payments (chain, created) WHERE state NOT IN ('confirmed', 'expired');
    CREATE INDEX account_nonces ON payments (chain, sender, account_nonce)
        WHERE account_nonce IS NOT NULL AND state IN ('approved', 'signed', 'sent');
    CREATE TABLE payees (
        principal TEXT NOT NULL,
        name TEXT NOT NULL,
        address TEXT NOT NULL,
        added TEXT NOT NULL,
        PRIMARY KEY (principal, name),
        UNIQUE (principal, address)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE watched_wallets (
        principal TEXT NOT NULL,
        name TEXT NOT NULL,
        address TEXT NOT NULL,
        added TEXT NOT NULL,
        PRIMARY KEY (principal, name)
    ) STRICT, WITHOUT ROWID;
";
