import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { defineConfig, type TestProjectConfiguration } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { longestFirst } from './test/longest-first.ts';
import { useScratchDirectory } from './test/support/scratch.ts';

/**
 * One project per kind of test. The broker starts PostgreSQL for the first test that asks for it,
 * once for all of them.
 *
 * The files of a project share the processes that run them, and Node loads the code as it does in
 * production, so each module is read once in a process instead of once for each file. A test that
 * replaces a module, or needs Vite to compile one, belongs to the project `unit-vite`.
 */
const seconds = 1000;
/**
 * The check of a change repeats a test that fails, and names those that then pass (closing-line-reporter.ts). Twice,
 * because a machine that stands still for a while fails a test and its first repetition alike.
 */
const retry = process.env['CI'] === 'true' ? 2 : 0;
/** More than there are cores: tests often wait for a process, a browser or a timer. */
const filesAtOnce = availableParallelism() + 3;
/** Collecting garbage with many threads takes a twentieth more of the processor. */
const execArgv = ['--single-threaded-gc'];
/** Node loads the modules of workers and of what runs beside them. */
const natively = { viteModuleRunner: false, nodeLoader: false };
const shared = {
  isolate: false,
  execArgv,
  retry,
  // A poll waits as long as a wait (wait-for.ts): Vitest's second is short for a busy machine.
  expect: { poll: { timeout: 80 * seconds } },
  experimental: natively,
  testTimeout: 60 * seconds,
  hookTimeout: 60 * seconds,
};
/**
 * For files that compute and hardly wait, after the others: each worker beyond these loads and compiles the program
 * again, for 5 seconds of a processor, and has no core to run on.
 */
const computing = {
  maxWorkers: availableParallelism() + 1,
  sequence: { groupOrder: 1 },
};
/** For whole flows. */
const longer = { ...shared, testTimeout: 120 * seconds, hookTimeout: 120 * seconds };
/** The same suites on PostgreSQL, Redis and BullMQ (test/support/platform.ts). */
const onCluster = { TEST_STORES: 'cluster' };
/** Beside what it tests, but in need of servers. */
const serverTests = 'test/support/servers.test.ts';
/** These kill processes and measure time as well, so they are fault tests beside their file. */
const executorFaults = 'src/core/executors/pool.{hostile,lifecycle}.test.ts';
/**
 * Of test/http what would be the same on the stores of a cluster: what is decided before a store is asked
 * (parsers, documents, pages, forms of answers), what moves the clock, which Redis would not follow, and what
 * asks of a store only what test/contracts asks of each.
 */
const sameOnCluster = [
  ...[
    'console',
    'console-build',
    'cors',
    'errors',
    'guide',
    'http-parser',
    'mcp-servers-commands',
    'mcp-servers-hostile',
    'memories-examples',
    'memories-outage',
    'openapi',
    'openapi-imports',
    'openapi-skills',
    'scheduled-jobs-preview',
  ],
  ...['thinking-models', 'thinking-tool-faults', 'webhook-addresses', 'webhook-trigger-docs'],
  ...['accounts', 'agent-triggers', 'agent-webhooks', 'agents', 'authentication', 'budgets'],
  ...['conversations-continued', 'credentials', 'memories', 'processes', 'rate-limit'],
  ...['scheduled-jobs', 'scheduled-jobs-runs', 'statistics', 'usage', 'webhook-deliveries'],
  ...['webhook-failures', 'webhook-restarts', 'webhook-trigger', 'webhook-trigger-calls'],
  ...['webhook-trigger-mapping', 'wrong-secrets'],
  // Runs commands of the command line, which know nothing of stores.
  'cli',
  // Scopes are compared in the process; what each success asks of a store, test/contracts asks of each.
  'scopes',
  // Lines of the log, and the order of refusals.
  ...['access-log', 'left-out-skills', 'skill-logs', 'thinking-secrets', 'unknown-parameters'],
  // contracts/jobs-lists, jobs-accept and jobs-perform; approvals; caps; keys-and-agents (the registry).
  ...['conversations', 'approvals', 'caps', 'skills'],
  // contracts/credentials; usage and usage-random; memories, memories-runs and memories-writes.
  ...['credentials-used', 'budgets-usage', 'memories-runs', 'thinking-memory'],
  // Runs on PostgreSQL by itself; what it asks about is not kept in Redis.
  'budgets-parallel',
  // contracts/thinking-journal, thinking-journal-resumed and thinking-journal-fenced; conversations-continued.
  ...[
    'thinking-bounds',
    'thinking-generate',
    'thinking-nested',
    'thinking-tokens',
    'thinking-tools',
  ],
  ...['costs', 'many-files', 'prompt-caching', 'thinking-history'],
  // Looks into a directory of data, in processes of its own.
  'secrets',
  // They move the clock, and have stores of their own.
  ...['key-of-runs', 'source-organizations'],
  // About executors, and about the queue of one process.
  ...['idle-executors', 'fair-share'],
  // contracts/skill-settings and credentials; it moves the clock.
  'skill-settings-used',
  // What is sent to which model, and what is refused before; contracts/keys-and-agents, jobs-accept, thinking-journal.
  ...['agent-settings', 'agent-trials', 'fallback-models', 'instruction-values'],
  ...['model-abilities', 'thinking-responses', 'thinking-too-long'],
  // Files of a directory of data, and lines of the log.
  'webhook-trigger-secrets',
].map((name) => `test/http/${name}.test.ts`);
/** What finds more the longer it runs: `npm run soak` (test/support/soak.ts). */
const soakOnly = ['test/faults/{alerts,cluster-chaos,executable,first-start,packages}.test.ts'];
const soaks = [
  ...soakOnly,
  'test/contracts/{gates,jobs-random,memories,schedules-tick,usage-random}.test.ts',
  'test/faults/cluster-{clocks,deploy,kill,network,postgres,redis,roles,work}.test.ts',
  'test/faults/{approvals-kill,durable-kill,durable-lifecycle}.test.ts',
  'test/faults/kill{,-limits,-schedules-and-webhooks,-thinking}.test.ts',
  'test/faults/{move,replace,sigterm,storage}.test.ts',
  'test/journeys/mcp.test.ts',
  'src/core/executors/pool.hostile.test.ts',
];
/** For projects that start the program, or show the console. */
const globalSetup = ['test/support/bundle.ts'];
const isSoak = process.env['SOAK'] === 'true';
const isProjectNamed = process.argv.some((argument) => argument.startsWith('--project'));

/** Need Vite: these import JSX, or replace a module. */
const needVite = ['console/src/**/*.test.ts', 'src/core/skills/catalog/{catalog,growth}.test.ts'];

/**
 * Unit tests of what runs other people's code in processes and threads, speaks HTTP, or reads large
 * documents: they take seconds, so `npm run verify` leaves them to `npm test`.
 */
const longUnits = [
  'scripts/deploy*.test.ts',
  'src/adapters/egress/{guarded-fetch,keep-alive}.test.ts',
  'src/core/executors/{pool,pool.steps,pool.waits,generate}.test.ts',
  'src/adapters/http/{connections,linear-time,rate-limit}.test.ts',
  'src/adapters/models/{call-settings,loading,models,wire}.test.ts',
  'src/adapters/queue/memory.test.ts',
  'src/adapters/sandbox/*.test.ts',
  'src/core/skills/catalog/**/*.test.ts',
  'src/platform/remote-skills/openapi/documents-of-others.test.ts',
  'test/support/*.test.ts',
];

/** Tools bring tests of their own along. */
const installed = '**/node_modules/**';

const unit = {
  include: ['{src,scripts,packages/*/src}/**/*.test.ts'],
  exclude: [installed, executorFaults, ...longUnits, ...needVite],
};
const unitLong = { include: longUnits, exclude: [serverTests, executorFaults, ...needVite] };
const contracts = { include: ['test/contracts/**/*.test.ts', serverTests] };
const http = { include: ['test/http/**/*.test.ts'] };
const httpCluster = { ...http, exclude: sameOnCluster };
const journeys = { include: ['test/journeys/**/*.test.ts'] };
const browser = { include: ['test/browser/**/*.test.ts'] };
/** These kill processes and wait for the rest to recover. */
const faults = { include: ['test/faults/**/*.test.ts', executorFaults], exclude: soakOnly };
/** A hook of theirs starts up to seven processes. */
const longest = { ...shared, testTimeout: 300 * seconds, hookTimeout: 180 * seconds };
const journeysCluster = { include: ['test/journeys/agents-documents.test.ts'] };

/** Named alone, by `--project`. */
const byKind = [
  { test: { name: 'unit', ...unit, ...shared } },
  { test: { name: 'unit-long', ...unitLong, ...shared } },
  { test: { name: 'contracts', ...contracts, ...shared } },
  { test: { name: 'http', ...http, ...shared } },
  { test: { name: 'http-cluster', ...httpCluster, ...shared, env: onCluster } },
  { test: { name: 'journeys', ...journeys, ...longer, globalSetup } },
  { test: { name: 'journeys-cluster', ...journeysCluster, ...longer, env: onCluster } },
  { test: { name: 'browser', ...browser, ...longer, globalSetup } },
  { test: { name: 'faults', ...faults, ...longest, globalSetup } },
] satisfies TestProjectConfiguration[];

/**
 * The same files where no project is named: those that need the same of a process share its workers, since
 * each new worker loads Vitest and the program again. In one project, files that wait for processes to recover run
 * beside files that compute: Vitest ends a worker where the next file is of another project.
 */
const together = [
  {
    test: {
      name: 'embedded',
      include: [browser, unit, unitLong, contracts, http, journeys, faults].flatMap(
        ({ include }) => include,
      ),
      exclude: [installed, ...soakOnly, ...needVite],
      ...longest,
      globalSetup,
    },
  },
  {
    test: {
      name: 'cluster',
      include: [httpCluster, journeysCluster].flatMap(({ include }) => include),
      exclude: sameOnCluster,
      ...longer,
      ...computing,
      env: onCluster,
    },
  },
] satisfies TestProjectConfiguration[];

/** What `npm test` runs. */
const everyChange = [
  ...(isProjectNamed ? byKind : together),
  {
    test: {
      name: 'unit-vite',
      include: needVite,
      isolate: false,
      execArgv,
      setupFiles: ['test/page-address.ts'],
      experimental: { viteModuleRunner: true, nodeLoader: true },
      fsModuleCache: false,
      retry,
      testTimeout: 60 * seconds,
      ...(isProjectNamed ? {} : computing),
    },
  },
] satisfies TestProjectConfiguration[];

const everyName = everyChange.map(({ test }) => test.name);

const soak: TestProjectConfiguration = {
  test: {
    name: 'soak',
    include: soaks,
    ...shared,
    globalSetup,
    testTimeout: 600 * seconds,
    hookTimeout: 60 * seconds,
    fileParallelism: false,
  },
};

/** Where Vitest is to begin a file: the longest first, else one of them would run alone at the end. */
const begins = new Map(longestFirst.map((file, index) => [join(import.meta.dirname, file), index]));
/** The files of a project after those of the projects before it, so that its workers begin once. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const beginOf = ({ moduleId }: TestSpecification) => begins.get(moduleId) ?? begins.size;
    const sorted = (await super.sort(files)).toSorted((a, b) => beginOf(a) - beginOf(b));
    const byProject = Map.groupBy(sorted, ({ project }) => everyName.indexOf(project.name));
    return [...byProject].toSorted(([a], [b]) => a - b).flatMap(([, those]) => those);
  }
}

useScratchDirectory();
// Compiled code is kept on disk for the workers, and for the processes that tests start.
process.env['NODE_COMPILE_CACHE'] ??= join(import.meta.dirname, 'node_modules/.cache/compile');

export default defineConfig({
  test: {
    passWithNoTests: true,
    maxWorkers: filesAtOnce,
    sequence: { sequencer: LongestFirst },
    globalSetup: ['test/support/server-broker.ts'],
    // Vite's loader may give one of two that import a module at the same time a module without exports.
    experimental: natively,
    // It spares a fifth of a second, and what another run has left in it is one more thing to doubt when a test fails.
    fsModuleCache: false,
    reporters: ['default', './test/support/closing-line-reporter.ts'],
    projects: isSoak ? [soak] : everyChange,
  },
});
