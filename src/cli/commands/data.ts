/** The commands that work on the platform's data: `backup` and `migrate-to-cluster`. */
import type { Command } from 'commander';
import type { Io } from '../io.ts';

export function addDataCommands(program: Command, io: Io): void {
  program
    .command('backup')
    .description('copy the embedded database while the platform runs (DATA_DIR)')
    .argument('[file]', 'the file to make')
    .action(async (file: string | undefined) => {
      const { backUp } = await import('../backup.ts');
      await backUp(io, file);
    });
  program
    .command('migrate-to-cluster')
    .description('move the data of DATA_DIR into the PostgreSQL of DATABASE_URL')
    .action(async () => {
      const { migrateToCluster } = await import('../migrate-to-cluster.ts');
      await migrateToCluster(io);
    });
}
