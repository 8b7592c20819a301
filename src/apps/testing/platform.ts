/** The platform of one test: jobs as they are, on a database in memory, with a clock and models of the test. */
import { Readable } from 'node:stream';
import { DirectoryBlobs } from '../../adapters/blobs/directory-blobs.ts';
import type { Database } from '../../adapters/database/database.ts';
import { openInMemory } from '../../adapters/database/sqlite.ts';
import type { Agents } from '../../core/agents/agents.ts';
import { ApiKeys } from '../../core/api-keys/api-keys.ts';
import { readConfig } from '../../core/config/config.ts';
import type { Context } from '../../core/context/context.ts';
import { RunObservers } from '../../core/context/run-observer.ts';
import { LoadedSkills } from '../../core/executors/loaded-skills.ts';
import { Files } from '../../core/files/files.ts';
import { type AcceptedJob, Acceptor } from '../../core/jobs/accept.ts';
import { ChildJobs } from '../../core/jobs/child-jobs.ts';
import { JobFeed } from '../../core/jobs/feed.ts';
import type { Memories } from '../../core/memories/memories.ts';
import { readRemember } from '../../core/memories/run-questions.ts';
import type { SkillDefinition } from '../../core/skills/definition.ts';
import { SkillRegistry } from '../../core/skills/registry.ts';
import { SkillSettings } from '../../core/skills/settings.ts';
import type { Caller } from '../../kernel/caller.ts';
import { isId } from '../../kernel/ids.ts';
import { createLogger } from '../../kernel/log.ts';
import { permanentError } from '../../kernel/permanent-error.ts';
import { composeAgents } from '../composition/agents.ts';
import { composeJobRuns } from '../composition/job-runs.ts';
import { TestClock } from './clock.ts';
import { TestExecutors } from './executors.ts';
import { renameFile } from './jobs-of-test.store.ts';
import type { Script } from './script.ts';
import { StandIns } from './stand-ins.ts';
import { ScriptedThinking } from './thinking.ts';
import { ScriptedEnds, scriptedChildren, scriptedWaitKinds } from './waits.ts';

const log = createLogger('silent');
/** A run is unloaded for each wait, however short. A test of diverging code ends soon. */
const pace = { keepLoadedMs: 0, patienceMs: 500 };

/** Nothing waits for a hint: the driver reads which jobs are due. */
const queue: Context['queue'] = {
  sendHints() {},
  consume() {
    throw new Error('This queue handles nothing.');
  },
  isRunningLow: () => true,
  isConnected: () => true,
  async close() {},
};

export type TestPlatform = Awaited<ReturnType<typeof openPlatform>>;

/** Opens the database of one test. */
export const openDatabase = (): Promise<Database> => openInMemory(log);

export async function openPlatform(
  database: Database,
  dataDir: string,
  definition: SkillDefinition,
  script: Script,
) {
  const clock = new TestClock(script.startedAt);
  const context: Context = {
    config: {
      ...readConfig({}),
      skillEnvironment: script.options.config ?? {},
      // A further attempt begins at once.
      retryBackoffMs: 0,
    },
    database,
    clock,
    queue,
    bus: null,
    log,
    writer: 'test',
    observers: new RunObservers(),
  };
  const skills = new SkillRegistry(context);
  const { agents, memories } = composeAgents(context, { skills });
  const apiKeys = new ApiKeys(context, agents);
  const files = new Files(context, new DirectoryBlobs(dataDir, false));
  const standIns = new StandIns(definition, script);
  await skills.register(standIns.facts());
  const executors = new TestExecutors(script, clock, standIns);
  const ends = new ScriptedEnds(script);
  const waitKinds = scriptedWaitKinds(script, ends);
  // A script answers what its other parts are for.
  const thinking = new ScriptedThinking(script, standIns);
  const skillSettings = new SkillSettings(context, null);
  const jobs = composeJobRuns(
    context,
    { agents, apiKeys, files, memories, skills, skillSettings, thinking },
    {
      executors,
      loadedSkills: new AllSkills(null, skills),
      turns: new Map(),
      runners: new Map(),
      pace,
    },
    { feed: new JobFeed(), waitKinds, times: {} },
  );
  const { admission, settler } = jobs;
  // No job is claimed as it is accepted, because there are no turns.
  const acceptor = new Acceptor(context, admission, settler, new Map());
  const childJobs = new ChildJobs({ skills, agents, admission, acceptor });
  waitKinds.set('run', scriptedChildren(script, childJobs));
  const caller = await callerOf(apiKeys, agents, script);
  await remember(memories, caller, script);
  await keepFiles(context, files, caller, script);
  return {
    ...jobs,
    context,
    clock,
    script,
    skills,
    memories,
    files,
    acceptor,
    standIns,
    executors,
    ends,
    caller,
  };
}

/** Scripts answer for skills that are not there. */
class AllSkills extends LoadedSkills {
  override canRun(): boolean {
    return true;
  }
}

/** The id of the agent whose runs these are. */
export const agentOf = ({ options: { agentId = 'agent-1' } }: Script) => agentId;

async function callerOf(apiKeys: ApiKeys, agents: Agents, script: Script): Promise<Caller> {
  const { organizationId: organization_id = 'organization-1' } = script.options;
  const key = { client_name: 'test', scopes: ['*'], organization_id };
  const caller = await apiKeys.verify((await apiKeys.issue(key)).plaintext_key);
  const id = agentOf(script);
  if (id !== 'default') await agents.create(caller, { id });
  return caller;
}

/** Makes the memories that a test gives. */
async function remember(memories: Memories, caller: Caller, script: Script): Promise<void> {
  const owning = { organizationId: caller.organizationId, agentId: agentOf(script) };
  const { memory = [], userId = null } = script.options;
  for (const given of memory) {
    const { whose, ...fields } = readRemember({ ...given }, script.startedAt);
    if (whose === 'user' && userId === null) {
      throw permanentError('this run is for no user, so whose must be agent');
    }
    await memories.create(owning, fields, whose === 'agent' ? null : userId);
  }
}

/** Keeps the files that a test gives, under its ids. */
async function keepFiles(
  { database }: Context,
  files: Files,
  { organizationId }: Caller,
  { options: { files: given = [] } }: Script,
): Promise<void> {
  for (const { id, name, data, userId = null } of given) {
    if (!isId(id)) throw permanentError(`the id of the file ${name} must be a UUID`);
    const owner = { organizationId, userId, jobId: null };
    const kept = await files.create(owner, name, Readable.from([Buffer.from(data)]));
    await database.write((tx) => renameFile(tx, kept.id, id));
  }
}

/** Accepts the job of the tested skill. */
export async function acceptJob(platform: TestPlatform, input: string): Promise<AcceptedJob> {
  const { acceptor, caller, script, standIns } = platform;
  const { userId, attempts: maxAttempts = 1 } = script.options;
  const acceptance = await acceptor.accept({
    organizationId: caller.organizationId,
    apiKeyId: caller.keyId,
    agentId: agentOf(script),
    userId: userId ?? 'test',
    isForUser: userId !== undefined,
    triggerType: 'api',
    skill: standIns.definition,
    maxAttempts,
    input,
    retryOf: null,
  });
  if (!('job' in acceptance)) throw new Error(`The job was not accepted: ${acceptance.kind}`);
  standIns.mainJob = acceptance.job.id;
  return acceptance.job;
}
