/** Rules that never fire look like rules that are kept, so each is shown a file that breaks it. */
import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';

const root = join(import.meta.dirname, '..');
const project = mkdtempSync(join(tmpdir(), 'skillwright-imports-'));

/** Sources of a small project, with the rules that each file breaks. */
const files: Record<string, { imports: string[]; breaks: string[] }> = {
  'src/kernel/a.ts': { imports: ['../adapters/database/a.ts'], breaks: ['room-kernel'] },
  // A cycle is reported once, for one of its files.
  'src/adapters/database/a.ts': { imports: ['../../kernel/a.ts'], breaks: ['no-cycle'] },
  'src/adapters/database/postgres.ts': { imports: ['node:fs', 'pg'], breaks: [] },
  'src/adapters/database/sqlite.ts': { imports: ['node:sqlite', './postgres.ts'], breaks: [] },
  'src/adapters/queue/queue.ts': { imports: ['../../kernel/b.ts'], breaks: [] },
  'src/adapters/queue/memory.ts': { imports: ['./queue.ts'], breaks: [] },
  'src/kernel/b.ts': { imports: ['node:fs'], breaks: [] },
  'src/core/jobs/drivers.ts': {
    imports: ['node:sqlite', 'pg', 'fastify', 'vitest', './lonely.ts'],
    breaks: ['sqlite-driver', 'postgres-driver', 'fastify-at-the-edge', 'no-dev-dependency'],
  },
  'src/core/jobs/reaches.ts': {
    imports: [
      ...['../../platform/webhooks/a.ts', '../../adapters/queue/memory.ts', '../../../test/a.ts'],
      './drivers.ts',
    ],
    breaks: ['room-jobs', 'queue-through-its-port', 'product-stands-alone'],
  },
  'src/core/jobs/jobs.store.ts': {
    imports: ['../../adapters/database/sqlite.ts', './lonely.ts'],
    breaks: ['stores-know-only-rows'],
  },
  'src/core/jobs/jobs.routes.ts': {
    imports: [
      './jobs.store.ts',
      '../../adapters/http/a.ts',
      '../skills/definition.ts',
      './reaches.ts',
    ],
    breaks: ['routes-are-thin'],
  },
  'src/core/jobs/lonely.ts': { imports: [], breaks: [] },
  'src/core/jobs/orphan.ts': { imports: [], breaks: ['no-orphan'] },
  'src/adapters/http/a.ts': { imports: ['node:fs'], breaks: [] },
  'src/platform/schedules/a.ts': {
    imports: ['../../core/jobs/jobs.store.ts', '../../core/jobs/jobs.routes.ts'],
    breaks: ['stores-are-private', 'routes-belong-to-app'],
  },
  'src/core/memories/a.ts': { imports: ['../jobs/lonely.ts'], breaks: ['room-memories'] },
  'src/platform/webhooks/a.ts': { imports: ['../../core/jobs/lonely.ts'], breaks: [] },
  'src/core/novelty/a.ts': { imports: ['../../kernel/b.ts'], breaks: ['room-unknown'] },
  'src/core/skills/definition.ts': { imports: ['node:fs'], breaks: ['author-is-small'] },
  'src/core/skills/registry.ts': {
    imports: ['./catalog/text/count.ts', './definition.ts'],
    breaks: ['catalog-is-data'],
  },
  'src/core/skills/catalog/text/count.ts': {
    imports: ['../../definition.ts', '../../../../kernel/b.ts', './nowhere.ts'],
    breaks: ['catalog-stands-alone', 'resolvable'],
  },
  'src/core/executors/child/child.ts': { imports: [], breaks: [] },
  'src/core/config/config.ts': { imports: ['../../kernel/b.ts'], breaks: [] },
  'src/apps/composition/run.ts': {
    imports: [
      '../../core/config/config.ts',
      '../../platform/schedules/a.ts',
      '../../core/jobs/jobs.store.ts',
    ],
    breaks: [],
  },
  'src/apps/cli/main.ts': { imports: ['../../main.ts', './program.ts'], breaks: [] },
  'src/apps/cli/program.ts': {
    imports: ['../composition/run.ts', '../../main.ts'],
    breaks: ['room-cli-without-composition', 'command-line-starts-main'],
  },
  'src/author.ts': {
    imports: ['./core/skills/definition.ts', './kernel/b.ts'],
    breaks: ['author-is-small'],
  },
  'src/main.ts': {
    imports: ['./apps/composition/run.ts', './platform/webhooks/a.ts'],
    breaks: ['main-starts-the-composition'],
  },
  'packages/client/src/a.ts': {
    imports: ['node:fs', './b.ts'],
    breaks: ['client-needs-nothing'],
  },
  'packages/client/src/b.ts': {
    imports: ['../../../src/core/config/config.ts'],
    breaks: ['client-needs-nothing', 'clients-stand-alone'],
  },
  'console/a.ts': { imports: ['../src/core/config/config.ts'], breaks: ['clients-stand-alone'] },
  'test/a.ts': { imports: ['node:fs'], breaks: [] },
  'test/b.ts': { imports: ['../src/apps/composition/run.ts'], breaks: [] },
};

let found: Map<string, Set<string>>;

beforeAll(() => {
  for (const [file, { imports }] of Object.entries(files)) {
    mkdirSync(join(project, dirname(file)), { recursive: true });
    const lines = imports.map((name) => `import '${name}';`);
    writeFileSync(join(project, file), `${lines.join('\n')}\nexport {};\n`);
  }
  for (const file of ['.dependency-cruiser.cjs', 'package.json']) {
    copyFileSync(join(root, file), join(project, file));
  }
  symlinkSync(join(root, 'node_modules'), join(project, 'node_modules'));
  found = violations();
});

afterAll(() => rmSync(project, { recursive: true, force: true }));

function violations(): Map<string, Set<string>> {
  const { stdout } = spawnSync(
    process.execPath,
    [
      join(root, 'node_modules', '.bin', 'depcruise'),
      ...['src', 'console', 'packages', 'test', '--output-type', 'json'],
    ],
    { cwd: project, encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 },
  );
  const broken = new Map<string, Set<string>>();
  for (const { from, rule } of JSON.parse(stdout).summary.violations) {
    broken.set(from, (broken.get(from) ?? new Set()).add(rule.name));
  }
  return broken;
}

test.each(Object.entries(files))('%s is judged by the import rules', (file, { breaks }) => {
  expect([...(found.get(file) ?? [])].sort()).toEqual([...breaks].sort());
});
