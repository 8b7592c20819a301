/** `skillwright agents`: who works, and a conversation with one. */
import type { Client, JobEvent } from '@skillwright/client';
import type { Command } from 'commander';
import {
  type ApiOptions,
  deleteOne,
  itemsOf,
  type ListOptions,
  type Schema,
  showList,
  showOne,
} from '../api-answers.ts';
import { connect, path } from '../connection.ts';
import { defineApiCommand, defineCommand, defineList, withPage } from '../define-command.ts';
import { asCliError, jobFailed } from '../errors.ts';
import { type Io, writeJson } from '../io.ts';
import { eventLine } from '../job-events.ts';
import { clean, styled } from '../print.ts';
import { readSkillInput } from '../skill-input.ts';

interface ChatOptions extends ApiOptions {
  readonly message?: string;
  readonly conversation?: string;
}

interface CreateOptions extends ApiOptions {
  readonly instructions?: string;
  readonly model?: string;
  readonly skills?: string;
  readonly priority?: string;
  readonly maxConcurrency?: string;
}

export function addAgentCommands(program: Command, io: Io): void {
  const agents = defineCommand(program, 'agents', {
    about: 'list, create, show and delete agents, set a budget, talk to one',
    examples: ['agents', 'agents chat support'],
  });
  withPage(
    defineList(agents, { about: 'list agents, newest first', examples: ['agents --json'] }),
  ).action((options: ListOptions) => listAgents(io, options));
  defineApiCommand(agents, 'show <agent>', {
    about: 'show an agent',
    examples: ['agents show support'],
  }).action((id: string, options: ApiOptions) =>
    showOne(io, options, {
      ...{ method: 'GET', path: path`/api/agents/${id}` },
      times: ['created_at', 'updated_at'],
    }),
  );
  addChanges(agents, io);
  defineApiCommand(agents, 'chat <agent>', {
    about: 'talk to an agent: each line of stdin is a task, all in one conversation',
    examples: ['agents chat support', `agents chat support --message 'What is open?'`],
  })
    .option('--message <text>', 'this one task in place of lines of stdin')
    .option('--conversation <id>', 'a conversation to continue')
    .action((id: string, options: ChatOptions) => chat(io, id, options));
}

function addChanges(agents: Command, io: Io): void {
  defineApiCommand(agents, 'create <agent> [fields...]', {
    about: 'create an agent; further fields of the API as the input of run',
    examples: [
      `agents create reader --instructions 'Answer in one sentence.' --skills 'text/*,web/v1.0/fetch-page'`,
      'agents create support @support.json --model openai/gpt-5.1',
    ],
  })
    .option('--instructions <text>', 'the system prompt of its model')
    .option('--model <model>', 'provider/model, else DEFAULT_MODEL')
    .option('--skills <patterns>', 'what its model may call as tools, comma-separated')
    .option('--priority <priority>', 'of its jobs: high, normal (the default) or low')
    .option('--max-concurrency <n>', 'most of its runs at a time')
    .action((id: string, words: string[], options: CreateOptions) =>
      createAgent(io, { id, words, options }),
    );
  defineApiCommand(agents, 'delete <agent>', {
    about: 'delete an agent that no schedule or trigger names',
    examples: ['agents delete support'],
  }).action((id: string, options: ApiOptions) =>
    deleteOne(io, options, { id, path: path`/api/agents/${id}` }),
  );
  defineApiCommand(agents, 'budget <agent> [limits...]', {
    about: 'show the budget of an agent, or set it; --remove deletes it',
    examples: ['agents budget reader tokens_per_day=50000', 'agents budget reader --remove'],
  })
    .option('--remove', 'delete the budget')
    .action((agent: string, words: string[], options: ApiOptions & { remove?: boolean }) =>
      changeBudget(io, { agent, words, options }),
    );
}

async function createAgent(
  io: Io,
  { id, words, options }: { id: string; words: readonly string[]; options: CreateOptions },
): Promise<void> {
  const { instructions, model, skills, priority, maxConcurrency } = options;
  const fields = await readSkillInput(io, words);
  const body = {
    ...(fields as object),
    id,
    ...(instructions !== undefined && { instructions }),
    ...(model !== undefined && { model }),
    ...(skills !== undefined && { skills: itemsOf(skills) }),
    ...(priority !== undefined && { priority }),
    ...(maxConcurrency !== undefined && { max_concurrency: Number(maxConcurrency) }),
  };
  await showOne(io, options, {
    ...{ method: 'POST', path: '/api/agents', body },
    times: ['created_at', 'updated_at'],
  });
}

async function changeBudget(
  io: Io,
  {
    agent,
    words,
    options,
  }: { agent: string; words: readonly string[]; options: ApiOptions & { remove?: boolean } },
): Promise<void> {
  const operation = path`/api/agents/${agent}/budget`;
  if (options.remove) return deleteOne(io, options, { id: agent, path: operation });
  await showOne(
    io,
    options,
    words.length === 0
      ? { method: 'GET', path: operation }
      : { method: 'PUT', path: operation, body: await readSkillInput(io, words) },
  );
}

function listAgents(io: Io, options: ListOptions): Promise<void> {
  return showList<Schema<'Agent'>>(io, options, {
    path: '/api/agents',
    columns: [
      { title: 'AGENT', of: (agent) => agent.id },
      { title: 'NAME', of: (agent) => agent.name },
      { title: 'STATUS', of: (agent) => agent.status, as: 'state' },
      { title: 'MODEL', of: (agent) => agent.model },
      { title: 'SKILLS', of: (agent) => agent.skills },
    ],
  });
}

interface Talk {
  readonly io: Io;
  readonly client: Client;
  readonly agent: string;
  readonly json: boolean;
}

async function chat(io: Io, agent: string, options: ChatOptions): Promise<void> {
  const talk = { io, client: connect(io, options), agent, json: options.json === true };
  let { conversation } = options;
  // An unknown agent is refused before the first task is typed.
  await talk.client.request({ method: 'GET', path: path`/api/agents/${agent}` });
  if (options.message !== undefined) {
    await turn(talk, options.message, conversation);
    return;
  }
  prompt(io);
  for await (const line of io.stdin.lines()) {
    if (line.trim() !== '') conversation = await turnOrReason(talk, line, conversation);
    if (io.interrupted.aborted) return;
    prompt(io);
  }
  if (conversation !== undefined && io.stdin.isTTY) {
    io.stderr.write(
      `\nTo go on: skillwright agents chat ${agent} --conversation ${conversation}\n`,
    );
  }
}

function prompt({ stdin, stderr }: Io): void {
  if (stdin.isTTY) stderr.write(styled(stderr, 'bold', '> '));
}

/** On a terminal a failed turn is told, and the conversation goes on. */
async function turnOrReason(
  talk: Talk,
  task: string,
  conversation: string | undefined,
): Promise<string | undefined> {
  try {
    return await turn(talk, task, conversation);
  } catch (error) {
    if (!talk.io.stdin.isTTY || talk.io.interrupted.aborted) throw error;
    talk.io.stderr.write(`${(asCliError(error) as Error).message}\n`);
    return conversation;
  }
}

/** What one who waits for an answer is shown meanwhile. */
function isShown(event: JobEvent): boolean {
  if (event.type === 'status') return event.data.status === 'waiting';
  return event.type === 'tool_call' || event.type === 'tool_result';
}

/** One task and its answer; the conversation that it was part of. */
async function turn(
  { io, client, agent, json }: Talk,
  task: string,
  conversation: string | undefined,
): Promise<string> {
  const options = {
    agentId: agent,
    conversationId: conversation,
    signal: io.interrupted,
  };
  const started = await client.start('agent/v1.0/run-task', { task }, options);
  const { job_id, conversation_id } = started.accepted;
  let said = '';
  for await (const event of started.events({ signal: io.interrupted })) {
    if (json) continue;
    if (event.type === 'token') {
      const text = clean(event.data.text);
      said += text;
      io.stdout.write(text);
    } else if (isShown(event)) {
      const line = eventLine(io.stderr, event);
      if (line !== null)
        io.stderr.write(`${said.endsWith('\n') || said === '' ? '' : '\n'}${line}\n`);
    }
  }
  const job = await started.get();
  if (job.status !== 'completed') {
    if (said !== '') io.stdout.write('\n');
    throw jobFailed(job_id, job.error ?? { code: job.status, message: `It is ${job.status}` });
  }
  const { answer } = job.output as { answer: string };
  if (json) writeJson(io, { job_id, conversation_id, answer });
  else io.stdout.write(said === '' ? `${clean(answer)}\n` : '\n');
  return conversation_id;
}
