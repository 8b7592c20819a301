/** The queries on the settings of organizations for prompts. */
import type { Selectable } from 'kysely';
import type { Handle, Transaction } from '../../../adapters/database/database.ts';
import type { PromptSettingsTable } from '../../../adapters/database/tables.ts';

export type PromptSettingsRow = Selectable<PromptSettingsTable>;

export function listSettings({ kysely }: Handle) {
  return kysely.selectFrom('prompt_settings').selectAll().execute();
}

export function findSettings({ kysely }: Handle, organizationId: string) {
  return kysely
    .selectFrom('prompt_settings')
    .select(['keep', 'retention_days', 'max_mb'])
    .where('organization_id', '=', organizationId)
    .executeTakeFirst();
}

export async function putSettings(tx: Transaction, row: PromptSettingsRow): Promise<void> {
  const { organization_id: _, ...own } = row;
  await tx.kysely
    .insertInto('prompt_settings')
    .values(row)
    .onConflict((conflict) => conflict.column('organization_id').doUpdateSet(own))
    .execute();
}
