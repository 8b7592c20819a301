import { defineConfig } from 'vitest/config';

/**
 * One project per kind of test. The broker starts PostgreSQL for the first test that asks for it,
 * once for all of them. Fault tests kill processes and measure time, so they run apart from everything
 * else and one file at a time.
 */
const seconds = 1000;
/** The same suites on PostgreSQL, Redis and BullMQ (test/support/platform.ts). */
const onCluster = { TEST_STORES: 'cluster' };
/** Beside what it tests, but in need of servers. */
const serverTests = 'test/support/servers.test.ts';
/** These kill processes and measure time as well, so they are fault tests beside their file. */
const executorFaults = 'src/executors/pool.{hostile,lifecycle}.test.ts';

export default defineConfig({
  test: {
    passWithNoTests: true,
    globalSetup: ['test/support/server-broker.ts'],
    reporters: ['default', './test/support/closing-line-reporter.ts'],
    projects: [
      {
        test: {
          name: 'unit',
          include: ['{src,console/src,scripts,test/support}/**/*.test.ts'],
          exclude: [serverTests, executorFaults],
          testTimeout: 10 * seconds,
        },
      },
      {
        test: {
          name: 'contracts',
          include: ['test/contracts/**/*.test.ts', serverTests],
          testTimeout: 30 * seconds,
          hookTimeout: 30 * seconds,
        },
      },
      {
        test: {
          name: 'http',
          include: ['test/http/**/*.test.ts'],
          testTimeout: 30 * seconds,
          hookTimeout: 30 * seconds,
        },
      },
      {
        test: {
          name: 'http-cluster',
          include: ['test/http/**/*.test.ts'],
          env: onCluster,
          testTimeout: 60 * seconds,
          hookTimeout: 60 * seconds,
        },
      },
      {
        test: {
          name: 'journeys',
          include: ['test/journeys/**/*.test.ts'],
          testTimeout: 120 * seconds,
          hookTimeout: 60 * seconds,
        },
      },
      {
        test: {
          name: 'journeys-cluster',
          include: ['test/journeys/agents-documents.test.ts'],
          env: onCluster,
          testTimeout: 120 * seconds,
          hookTimeout: 60 * seconds,
        },
      },
      {
        test: {
          name: 'browser',
          include: ['test/browser/**/*.test.ts'],
          testTimeout: 60 * seconds,
          hookTimeout: 60 * seconds,
        },
      },
      {
        test: {
          name: 'faults',
          include: ['test/faults/**/*.test.ts', executorFaults],
          testTimeout: 300 * seconds,
          hookTimeout: 60 * seconds,
          fileParallelism: false,
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
});
