/** The commands that work on the platform's data: `backup` and `migrate-to-cluster`. */
import type { Command } from 'commander';
import { defineCommand } from '../define-command.ts';
import type { Io } from '../io.ts';

export function addDataCommands(program: Command, io: Io): void {
  defineCommand(program, 'backup', {
    about: 'copy the embedded database while the platform runs (DATA_DIR)',
    examples: ['backup monday.db', 'backup monday.db --json'],
  })
    .argument('[file]', 'the file to make')
    .option('--json', 'print one JSON value')
    .action(async (file: string | undefined, options: { json?: boolean }) => {
      const { backUp } = await import('../backup.ts');
      await backUp(io, file, options);
    });
  defineCommand(program, 'migrate-to-cluster', {
    about: 'move the data of DATA_DIR into the PostgreSQL of DATABASE_URL',
    examples: ['migrate-to-cluster', 'migrate-to-cluster --json'],
  })
    .option('--json', 'print one JSON value')
    .action(async (options: { json?: boolean }) => {
      const { migrateToCluster } = await import('../migrate-to-cluster.ts');
      await migrateToCluster(io, options);
    });
}
