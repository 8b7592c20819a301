import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { checkedOutCommit, packageVersion, runningVersion } from './version.ts';

const commit = 'ab12'.repeat(10);

/** A folder with these files. */
function folder(files: Record<string, string>): string {
  const directory = mkdtempSync(join(tmpdir(), 'skillwright-version-'));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(directory, name)), { recursive: true });
    writeFileSync(join(directory, name), text);
  }
  return directory;
}

describe('the commit of a checkout', () => {
  test.each([
    ['of a branch', { HEAD: 'ref: refs/heads/main\n', 'refs/heads/main': `${commit}\n` }],
    [
      'of a branch whose name git has packed',
      {
        HEAD: 'ref: refs/heads/main\n',
        'packed-refs': `# pack-refs with: peeled\n${'0'.repeat(40)} refs/heads/not/main\n${commit} refs/heads/main\n`,
      },
    ],
    ['that was checked out without a branch', { HEAD: `${commit}\n` }],
  ])('is found: one %s', (_, files) => {
    expect(checkedOutCommit(folder(files))).toBe(commit);
  });

  test('is found in a linked worktree, whose branch is in its repository', () => {
    const directory = folder({
      'tree/.git': 'gitdir: ../repository/worktrees/tree\n',
      'repository/worktrees/tree/HEAD': 'ref: refs/heads/topic\n',
      'repository/worktrees/tree/commondir': '../..\n',
      'repository/refs/heads/topic': `${commit}\n`,
    });

    expect(checkedOutCommit(join(directory, 'tree/.git'))).toBe(commit);
  });

  test.each([
    ['no repository', {}],
    ['a branch without a commit', { HEAD: 'ref: refs/heads/main\n' }],
    ['a HEAD of another form', { HEAD: 'something else' }],
  ])('is null where there is %s', (_, files) => {
    expect(checkedOutCommit(folder(files))).toBeNull();
  });
});

test('the running version is that of the package, with the commit as build metadata in a checkout', () => {
  const git = checkedOutCommit(join(import.meta.dirname, '../../../.git'));

  const expected = git === null ? packageVersion() : `${packageVersion()}+${git.slice(0, 8)}`;
  expect(runningVersion()).toBe(expected);
  expect(runningVersion()).toMatch(/^\d+\.\d+\.\d+(\+[0-9a-f]{8})?$/);
});
