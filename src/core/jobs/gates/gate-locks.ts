/**
 * The locks of gates on PostgreSQL; SQLite has only one writer at a time. A transaction locks gates after jobs, all at once and in
 * one order. Those of which it learns later it locks only where no other transaction has them.
 */
import type { Transaction } from '../../../adapters/database/database.ts';
import { lockOf } from './gates.ts';
import { takeLocks, tryLocks } from './places.store.ts';

/** Locks gates until the transaction ends. */
export async function lockGates(tx: Transaction, names: readonly string[]): Promise<void> {
  if (tx.dialect === 'postgres' && names.length > 0) await takeLocks(tx, locksOf(names));
}

/** Locks further gates unless another transaction has one of them: to wait for it could be a deadlock. Whether it has them. */
export async function tryLockGates(tx: Transaction, names: readonly string[]): Promise<boolean> {
  if (tx.dialect === 'sqlite' || names.length === 0) return true;
  return (await tryLocks(tx, { locks: locksOf(names) }))?.are_taken === true;
}

const locksOf = (names: readonly string[]) => [...new Set(names.map(lockOf))];
