/** Which fields of a skill's input and output hold its task and its answer; null for none. */
import type { Kysely } from 'kysely';

interface Skills {
  skills: { id: string; parameters_schema: string; task_field: string | null };
}

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const column of ['task_field', 'answer_field']) {
    await db.schema.alterTable('skills').addColumn(column, 'text').execute();
  }
  await nameTasks(db as Kysely<Skills>);
}

/**
 * Until now, a text named `task` in the input was the task of every skill. So it stays for the versions
 * that no process loads any more. A version that is loaded gets the fields that its definition names.
 */
async function nameTasks(db: Kysely<Skills>): Promise<void> {
  // Parsed here, because PostgreSQL refuses to parse a schema in which "\u0000" is written.
  const rows = await db.selectFrom('skills').select(['id', 'parameters_schema']).execute();
  for (const { id } of rows.filter(hasTask)) {
    await db.updateTable('skills').set({ task_field: 'task' }).where('id', '=', id).execute();
  }
}

function hasTask({ parameters_schema }: Pick<Skills['skills'], 'parameters_schema'>): boolean {
  const schema = JSON.parse(parameters_schema) as {
    properties?: { task?: { type?: unknown } };
  };
  return schema.properties?.task?.type === 'string';
}
