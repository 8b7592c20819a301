import type { Job } from '../api/jobs.ts';

/** What an error code means, for the user who has to fix the cause. */
const meanings: Readonly<Record<string, string>> = {
  skill_execution_failed: 'The skill’s code gave up or broke.',
  skill_timeout: 'The attempt took longer than the skill may, and was stopped.',
  output_invalid: 'What the skill gave back does not fit its own output schema.',
  missing_credentials: 'A secret, a key or a model that the skill needs is missing or was refused.',
  upstream_unavailable: 'Something outside the platform could not be reached or did not work.',
  budget_exceeded: 'A budget of tokens is used up.',
  worker_lost: 'The process that ran the attempt died before it had ended.',
  cancelled: 'A user or client cancelled it.',
  invalid_input: 'The arguments do not fit what the tool takes.',
  insufficient_scope: 'The API key that started the job may not run this skill.',
  skill_not_found: 'There is no active skill of that name.',
};

export const meaningOf = (code: string): string | undefined => meanings[code];

type Source = Job['trigger_type'];

/** How a job or a conversation was begun; a webhook is what is called when something has happened. */
const sources: Readonly<Record<Source, string>> = {
  api: 'API',
  scheduled: 'schedule',
  webhook: 'trigger',
};

export const sourceText = (source: Source): string => sources[source];

/** As a filter offers them. */
export const sourceOptions = Object.entries(sources).map(([value, label]) => ({ value, label }));
