import pg from 'pg';
import { expect, test } from 'vitest';

/** Members that `pipeline.ts` uses and node-postgres does not document (docs/decisions/postgres-pipeline.md). */
test('a connection of node-postgres has every member that the pipeline uses', () => {
  const { connection } = new pg.Client() as unknown as {
    connection: Record<string, unknown> & { stream: Record<string, unknown> };
  };

  expect(connection).toBeInstanceOf(pg.Connection);
  for (const method of ['parse', 'bind', 'describe', 'execute', 'close', 'sync']) {
    expect(connection[method], method).toBeTypeOf('function');
  }
  for (const method of ['cork', 'uncork', 'destroy']) {
    expect(connection.stream[method], method).toBeTypeOf('function');
  }
});
