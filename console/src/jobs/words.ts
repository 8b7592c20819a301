import type { Job } from '../api/jobs.ts';

/** What an error code means, for the user who has to fix the cause. */
const meanings: Readonly<Record<string, string>> = {
  skill_execution_failed: 'The skill’s code failed.',
  skill_timeout: 'The attempt took longer than the skill’s timeout and was stopped.',
  output_invalid: 'The skill’s output violates its output schema.',
  missing_credentials: 'A secret, a key or a model that the skill needs is missing or was refused.',
  upstream_unavailable: 'An external service could not be reached or did not work.',
  budget_exceeded: 'A budget of tokens is used up.',
  model_refused: 'The model, or the filter of its provider, refused to answer.',
  guard_refused: 'A guard of the agent refused the message or the answer.',
  guard_failed: 'A guard of the agent failed, so the text did not pass.',
  replay_diverged: 'The skill’s code has changed and no longer fits what the run has on record.',
  worker_lost: 'The process of the attempt died.',
  cancelled: 'A user or client cancelled it.',
  expired: 'It had not begun when its time to begin had passed.',
  invalid_input: 'The arguments violate the tool’s input schema.',
  insufficient_scope: 'The API key that started the job may not run this skill.',
  skill_not_found: 'There is no active skill of that name.',
};

export const meaningOf = (code: string): string | undefined => meanings[code];

type Source = Job['trigger_type'];

/** The source of a job or conversation. The API’s `webhook` is a trigger here, because a webhook in the console is outgoing. */
const sources: Readonly<Record<Source, string>> = {
  api: 'API',
  scheduled: 'schedule',
  webhook: 'trigger',
};

export const sourceText = (source: Source): string => sources[source];

/** As a filter offers them. */
export const sourceOptions = Object.entries(sources).map(([value, label]) => ({ value, label }));
