/**
 * Signing secrets of webhooks and triggers at rest: encrypted and bound to their row, so a secret that
 * was copied to another row cannot be decrypted. Without an encryption key (a cluster that was given
 * none) they are stored as they are; `sealStored` encrypts those once there is a key.
 */
import { type SqlBool, sql } from 'kysely';
import { type Cipher, DecryptionError } from '../kernel/encryption.ts';
import type { Database, Handle, Transaction } from './database.ts';

/** Rows encrypted in one transaction. */
const sealedMax = 200;
/** Rows of each table that are tried at the start. */
const checkedMax = 1_000;

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

export interface SigningSecrets {
  /** What a row is to hold of a secret. */
  seal(table: SecretTable, owner: SecretOwner, secret: string): StoredSecret;
  /** The secret that a row holds. Throws a DecryptionError where it cannot be decrypted. */
  open(table: SecretTable, owner: SecretOwner, stored: StoredSecret): string;
  /** Encrypts the secrets stored in plain text; returns how many. Does nothing without an encryption key. */
  sealStored(): Promise<number>;
  /** How many of the stored secrets (of the first 1,000 of each table) cannot be decrypted. */
  countUnusable(): Promise<number>;
  /** Whether secrets are stored as they are. */
  areAnyPlain(): Promise<boolean>;
}

/** `cipher` is null where no encryption key is set. */
export function createSigningSecrets(database: Database, cipher: Cipher | null): SigningSecrets {
  function seal(table: SecretTable, owner: SecretOwner, secret: string): StoredSecret {
    return cipher === null
      ? { secret, secret_sealed: 0 }
      : { secret: cipher.encrypt(secret, contextOf(table, owner)), secret_sealed: 1 };
  }

  function open(table: SecretTable, owner: SecretOwner, stored: StoredSecret): string {
    if (stored.secret_sealed === 0) return stored.secret;
    if (cipher === null) throw new DecryptionError();
    return cipher.decrypt(stored.secret, contextOf(table, owner));
  }

  function isUsable(table: SecretTable, row: SecretOwner & StoredSecret): boolean {
    try {
      open(table, row, row);
      return true;
    } catch (error) {
      if (error instanceof DecryptionError) return false;
      throw error;
    }
  }

  async function sealSome(tx: Transaction, table: SecretTable): Promise<number> {
    const rows = await findSecrets(tx, table, 0, sealedMax);
    const column = sql.ref(columns[table]);
    // Else the secret would stay readable in the bytes of the file that its row has left.
    const overwrite = tx.dialect === 'sqlite' && rows.length > 0;
    if (overwrite) await sql`pragma secure_delete = on`.execute(tx.kysely);
    for (const row of rows) {
      const { secret } = seal(table, row, row.secret);
      // The owner may have changed it since it was read; that change has encrypted it.
      await sql`update ${sql.table(table)} set ${column} = ${secret}, secret_sealed = 1
        where id = ${row.id} and secret_sealed = 0 and ${column} = ${row.secret}`.execute(
        tx.kysely,
      );
    }
    if (overwrite) await sql`pragma secure_delete = off`.execute(tx.kysely);
    return rows.length;
  }

  return {
    seal,
    open,

    async sealStored() {
      if (cipher === null) return 0;
      let total = 0;
      for (const table of tables) {
        for (let sealed = sealedMax; sealed === sealedMax; total += sealed) {
          if (!(await isAnyPlain(database.read, table))) break;
          sealed = await database.write((tx) => sealSome(tx, table));
        }
      }
      return total;
    },

    async countUnusable() {
      let unusable = 0;
      for (const table of tables) {
        const rows = await findSecrets(database.read, table, 1, checkedMax);
        unusable += rows.filter((row) => !isUsable(table, row)).length;
      }
      return unusable;
    },

    async areAnyPlain() {
      const found = await Promise.all(tables.map((table) => isAnyPlain(database.read, table)));
      return found.includes(true);
    },
  };
}

/** What an encrypted secret is bound to. */
function contextOf(table: SecretTable, { id, organization_id }: SecretOwner): string {
  return JSON.stringify([table, organization_id, id]);
}

/** Rows that hold a secret, encrypted or not, the first ones by their ids. */
async function findSecrets(db: Handle, table: SecretTable, sealed: 0 | 1, limit: number) {
  const column = sql.ref(columns[table]);
  const { rows } = await sql<SecretOwner & StoredSecret>`
    select id, organization_id, ${column} as secret, secret_sealed from ${sql.table(table)}
    where ${storedAs(table, sealed)} order by id limit ${limit}`.execute(db.kysely);
  return rows;
}

async function isAnyPlain(db: Handle, table: SecretTable): Promise<boolean> {
  return (await findSecrets(db, table, 0, 1)).length > 0;
}

/** In the words of the index of secrets that are not encrypted. */
function storedAs(table: SecretTable, sealed: 0 | 1) {
  return sql<SqlBool>`secret_sealed = ${sql.lit(sealed)} and ${sql.ref(columns[table])} is not null`;
}
