/**
 * Signing secrets of webhooks and triggers at rest: encrypted and bound to their row, so a secret that
 * was copied to another row cannot be decrypted. They are stored as they are without an encryption key
 * (a cluster that was given none), and while a process of the cluster cannot decrypt them yet (an older
 * version); `sealStored` encrypts those later.
 */
import { sql } from 'kysely';
import { type Cipher, DecryptionError } from '../../kernel/encryption.ts';
import type { Database, Handle, Transaction } from './database.ts';
import { signingContext } from './sealed-values.ts';

/** Rows encrypted in one transaction. */
const sealedMax = 200;
/** Rows of each table that are tried at the start. */
const checkedMax = 1_000;

/** What a process announces that reads encrypted signing secrets. */
export const opensSealedSecrets = 'encrypted-signing-secrets';

/** The tables, each with the column that holds the secret. */
const columns = { webhooks: 'secret', agent_triggers: 'signing_secret' } as const;
type SecretTable = keyof typeof columns;
const tables = Object.keys(columns) as SecretTable[];

/** The row that a secret belongs to. */
export interface SecretOwner {
  readonly id: string;
  readonly organization_id: string;
}

/** A secret as its row holds it. */
export interface StoredSecret {
  readonly secret: string;
  /** 1 where `secret` is encrypted. */
  readonly secret_sealed: number;
}

/** The signing secrets as a process stores and reads them. */
export class SigningSecrets {
  readonly #database: Database;
  /** Null where no encryption key is set. */
  readonly #cipher: Cipher | null;
  readonly #canAllOpen: () => boolean;

  /**
   * `cipher` is null where no encryption key is set. `canAllOpen` returns whether every process can decrypt now; an
   * older one would take the encrypted text for the secret.
   */
  constructor(database: Database, cipher: Cipher | null, canAllOpen: () => boolean) {
    this.#database = database;
    this.#cipher = cipher;
    this.#canAllOpen = canAllOpen;
  }

  /** What a row is to hold of a secret. */
  seal(table: SecretTable, owner: SecretOwner, secret: string): StoredSecret {
    return this.#cipher === null || !this.#canAllOpen()
      ? { secret, secret_sealed: 0 }
      : { secret: this.#cipher.encrypt(secret, signingContext(table, owner)), secret_sealed: 1 };
  }

  /** The secret that a row holds. Throws a DecryptionError where it cannot be decrypted. */
  open(table: SecretTable, owner: SecretOwner, stored: StoredSecret): string {
    if (stored.secret_sealed === 0) return stored.secret;
    if (this.#cipher === null) throw new DecryptionError();
    return this.#cipher.decrypt(stored.secret, signingContext(table, owner));
  }

  /** Encrypts the secrets stored in plain text; returns how many. Does nothing without an encryption key. */
  async sealStored(): Promise<number> {
    const cipher = this.#cipher;
    if (cipher === null || !this.#canAllOpen()) return 0;
    let total = 0;
    for (const table of tables) {
      for (let sealed = sealedMax; sealed === sealedMax; total += sealed) {
        if (!(await areAny(this.#database.read, table))) break;
        sealed = await this.#database.write((tx) => sealSome(tx, cipher, table));
      }
    }
    return total;
  }

  /** How many of the stored secrets (of the first 1,000 of each table) cannot be decrypted. */
  async countUnusable(): Promise<number> {
    let unusable = 0;
    for (const table of tables) {
      const rows = await findSecrets(this.#database.read, table, 1, checkedMax);
      unusable += rows.filter((row) => !this.#isUsable(table, row)).length;
    }
    return unusable;
  }

  /** Whether secrets are stored as they are. */
  async areAnyPlain(): Promise<boolean> {
    const found = await Promise.all(tables.map((table) => areAny(this.#database.read, table)));
    return found.includes(true);
  }

  #isUsable(table: SecretTable, row: SecretOwner & StoredSecret): boolean {
    try {
      this.open(table, row, row);
      return true;
    } catch (error) {
      if (error instanceof DecryptionError) return false;
      throw error;
    }
  }
}

async function sealSome(tx: Transaction, cipher: Cipher, table: SecretTable): Promise<number> {
  const rows = await findSecrets(tx, table, 0, sealedMax);
  const column = sql.ref(columns[table]);
  for (const row of rows) {
    const secret = cipher.encrypt(row.secret, signingContext(table, row));
    // The owner may have changed it since it was read; that change stands.
    await sql`update ${sql.table(table)} set ${column} = ${secret}, secret_sealed = 1
      where id = ${row.id} and secret_sealed = 0 and ${column} = ${row.secret}`.execute(tx.kysely);
  }
  return rows.length;
}

/** Rows that hold a secret, encrypted or not, the first ones by their ids. */
async function findSecrets(db: Handle, table: SecretTable, isSealed: 0 | 1, limit: number) {
  const column = sql.ref(columns[table]);
  // The terms of the index of secrets that are not encrypted.
  const { rows } = await sql<SecretOwner & StoredSecret>`
    select id, organization_id, ${column} as secret, secret_sealed from ${sql.table(table)}
    where secret_sealed = ${sql.lit(isSealed)} and ${column} is not null order by id limit ${limit}`.execute(
    db.kysely,
  );
  return rows;
}

async function areAny(db: Handle, table: SecretTable): Promise<boolean> {
  return (await findSecrets(db, table, 0, 1)).length > 0;
}
