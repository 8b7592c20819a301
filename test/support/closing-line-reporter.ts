/**
 * Ends a test run with one line that a person and a script read alike: `N passed, N failed`, and
 * `, N skipped` where there are any. It is written as the process exits, so nothing follows it.
 * Besides tests, a file that does not load and an error outside any test count as failures.
 * Tests that passed only when they were repeated are listed above it: each is a bug to be mended.
 */
import { writeSync } from 'node:fs';
import type { Reporter } from 'vitest/node';

type Modules = Parameters<NonNullable<Reporter['onTestRunEnd']>>[0];

/** The line for these results. */
export function closingLine(counts: { passed: number; failed: number; skipped: number }): string {
  const skipped = counts.skipped > 0 ? `, ${counts.skipped} skipped` : '';
  return `${counts.passed} passed, ${counts.failed} failed${skipped}`;
}

/** A paragraph that names the tests which passed only when repeated, or nothing. */
export function flakyTests(names: readonly string[]): string {
  if (names.length === 0) return '';
  return `\nFlaky, passed only when repeated:\n${names.map((name) => `  ${name}\n`).join('')}`;
}

function namesOfFlaky(modules: Modules): string[] {
  return modules.flatMap((module) =>
    [...module.children.allTests()]
      .filter((test) => test.diagnostic()?.flaky === true)
      .map((test) => `${module.relativeModuleId} > ${test.fullName}`),
  );
}

function count(modules: Modules, errorsOutsideTests: number) {
  const counts = { passed: 0, failed: errorsOutsideTests, skipped: 0 };
  for (const module of modules) {
    for (const test of module.children.allTests()) {
      const { state } = test.result();
      // A test that never got its turn was not shown to work.
      counts[state === 'pending' ? 'failed' : state] += 1;
    }
    counts.failed += module.errors().length;
    for (const suite of module.children.allSuites()) counts.failed += suite.errors().length;
  }
  return counts;
}

export default class ClosingLineReporter implements Reporter {
  #line = closingLine({ passed: 0, failed: 0, skipped: 0 });
  #flaky = '';

  onInit(): void {
    process.on('exit', () => writeSync(1, `${this.#flaky}\n${this.#line}\n`));
  }

  onTestRunEnd(modules: Modules, unhandledErrors: readonly unknown[]): void {
    this.#line = closingLine(count(modules, unhandledErrors.length));
    this.#flaky = flakyTests(namesOfFlaky(modules));
  }
}
