/** The memories of an agent: search while typing, add, change and delete. */
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import type { Schema } from '../api/client.ts';
import { deleteMemory, memoriesQuery } from '../api/memories.ts';
import { live } from '../api/queries.ts';
import { MemoryDialog } from '../forms/MemoryDialog.tsx';
import { useReachesUsers } from '../shell/session.ts';
import { Button } from '../ui/Button.tsx';
import { classes } from '../ui/classes.ts';
import { Confirm } from '../ui/Dialog.tsx';
import { Select } from '../ui/Field.tsx';
import { Brain, Pencil, Plus, Trash2, X } from '../ui/icons.tsx';
import { textLink } from '../ui/Links.tsx';
import { Empty, Loaded } from '../ui/Loading.tsx';
import { Menu } from '../ui/Menu.tsx';
import { NeedsScope } from '../ui/NeedsScope.tsx';
import { Section } from '../ui/Page.tsx';
import { Pagination, pageSize } from '../ui/Pagination.tsx';
import { SearchField } from '../ui/SearchField.tsx';
import { aboveRowLink, type Column, rowLink, Table } from '../ui/Table.tsx';
import { Time } from '../ui/Time.tsx';
import { useAct } from '../ui/useAct.ts';
import { ProfileOfUser } from './ProfileOfUser.tsx';

type Memory = Schema<'Memory'>;

/** The search, which is in the url. */
export interface MemorySearch {
  readonly q?: string;
  readonly tag?: string;
  readonly user?: string;
  /** `agent` for the agent's own memories alone. */
  readonly whose?: string;
  readonly page?: number;
}

type Doing = { what: 'new' } | { what: 'edit' | 'delete'; memory: Memory };

export function Memories({
  agentId,
  search,
  onSearch,
}: {
  agentId: string;
  search: MemorySearch;
  /** `isTyping` replaces the previous search in the browser's history. */
  onSearch: (search: MemorySearch, isTyping: boolean) => void;
}) {
  const mayRead = useReachesUsers();
  const { q = '', tag = '', user = '', whose = '', page = 1 } = search;
  const [doing, setDoing] = useState<Doing | null>(null);
  const query = useQuery({
    ...memoriesQuery(agentId, {
      ...(q && { q }),
      ...(tag && { tag }),
      ...(whose === 'agent' ? { user_id: '' } : user && { user_id: user }),
      limit: pageSize,
      offset: (page - 1) * pageSize,
    }),
    refetchInterval: live,
  });
  const remove = useAct({
    act: deleteMemory,
    done: 'The memory is deleted',
    changes: [['memories', agentId]],
    quiet: true,
  });
  function filter(next: MemorySearch, isTyping = false) {
    const filters = Object.entries({ q, tag, user, whose, ...next }).filter(([, value]) => value);
    onSearch(Object.fromEntries(filters), isTyping);
  }
  const users = [...new Set(query.data?.data.flatMap((memory) => memory.user_id ?? []))].sort();
  const tags = [...new Set(query.data?.data.map((memory) => memory.tag))].sort();
  const create = (
    <Button look="primary" icon={<Plus />} onClick={() => setDoing({ what: 'new' })}>
      New memory
    </Button>
  );
  const isSearching = [q, tag, user, whose].some((text) => text !== '');
  return (
    <div className="flex flex-col gap-4">
      <div className="flex flex-wrap items-center gap-2">
        <SearchField
          label="Search memories"
          value={q}
          onValue={(text) => filter({ q: text }, true)}
          className="min-w-48 grow"
        />
        <SearchField
          label="Tag"
          value={tag}
          onValue={(text) => filter({ tag: text }, true)}
          suggestions={tags}
          className="w-40"
        />
        {mayRead && (
          <>
            <div className="w-40">
              <Select
                aria-label="Whose memories"
                value={whose}
                onChange={({ target }) => filter({ whose: target.value, user: '' })}
              >
                <option value="">All memories</option>
                <option value="agent">The agent’s own</option>
              </Select>
            </div>
            <SearchField
              label="User"
              value={user}
              onValue={(text) => filter({ user: text, whose: '' }, true)}
              suggestions={users}
              className="w-40"
            />
          </>
        )}
        {create}
      </div>
      {mayRead && user && <ProfileOfUser key={user} agentId={agentId} userId={user} />}
      {!mayRead && <NeedsScope scopes={['memories']} act="Reading the memories of users" />}
      <Section flush>
        <Loaded query={query}>
          {({ data, total }) => (
            <div
              className={classes('transition-opacity', query.isPlaceholderData && 'opacity-60')}
              aria-busy={query.isPlaceholderData}
            >
              <Table
                caption={`Memories of ${agentId}`}
                columns={columnsOf(setDoing, filter)}
                rows={data}
                rowKey={({ id }) => id}
                empty={
                  isSearching ? (
                    <Empty
                      icon={<Brain />}
                      title="No memories found"
                      action={
                        <Button
                          icon={<X />}
                          onClick={() => filter({ q: '', tag: '', user: '', whose: '' })}
                        >
                          Clear the search
                        </Button>
                      }
                    >
                      A memory matches if it has any of the words, in any inflection. A tag and a
                      user match exactly.
                    </Empty>
                  ) : (
                    <Empty icon={<Brain />} title={`${agentId} has no memories yet`}>
                      A memory is a text that an agent keeps for later runs. Its skills and models
                      add memories; you can add one here.
                    </Empty>
                  )
                }
              />
              {total > 0 && (
                <Pagination page={page} total={total} onPage={(next) => filter({ page: next })} />
              )}
            </div>
          )}
        </Loaded>
      </Section>
      {doing?.what === 'new' && (
        <MemoryDialog agentId={agentId} memory={null} onClose={() => setDoing(null)} />
      )}
      {doing?.what === 'edit' && (
        <MemoryDialog agentId={agentId} memory={doing.memory} onClose={() => setDoing(null)} />
      )}
      {doing?.what === 'delete' && (
        <Confirm
          open
          onClose={() => setDoing(null)}
          title="Delete this memory?"
          verb="Delete"
          act={() => remove.mutateAsync(doing.memory)}
        >
          <p className="line-clamp-4 border-l-2 pl-3 text-ink">{doing.memory.content}</p>
          <p className="mt-2">The agent can no longer recall it. This cannot be undone.</p>
        </Confirm>
      )}
    </div>
  );
}

/** A value of a memory that narrows the list to it. */
function Narrowing({ text, onClick }: { text: string; onClick: () => void }) {
  return (
    <button
      type="button"
      title={`Only ${text}`}
      onClick={onClick}
      className={classes(
        aboveRowLink,
        'inline-flex h-6 max-w-40 items-center rounded bg-sunken px-1.5 font-mono text-xs text-muted ring-1 ring-line ring-inset hover:text-ink',
      )}
    >
      <span className="truncate">{text}</span>
    </button>
  );
}

function columnsOf(
  onDoing: (doing: Doing) => void,
  filter: (next: MemorySearch) => void,
): readonly Column<Memory>[] {
  return [
    {
      header: 'Memory',
      grows: true,
      cell: (memory) => (
        <button
          type="button"
          onClick={() => onDoing({ what: 'edit', memory })}
          className={classes(rowLink, 'block w-full text-left font-normal')}
        >
          <span className="line-clamp-2 whitespace-normal">{memory.content}</span>
        </button>
      ),
    },
    {
      header: 'Tag',
      from: 'sm',
      cell: ({ tag }) => <Narrowing text={tag} onClick={() => filter({ tag })} />,
    },
    {
      header: 'User',
      from: 'sm',
      cell: ({ user_id: user }) =>
        user === null ? (
          <span className="text-muted">all</span>
        ) : (
          <Narrowing text={user} onClick={() => filter({ user, whose: '' })} />
        ),
    },
    {
      header: 'From',
      from: 'lg',
      cell: ({ source }) =>
        source === null ? (
          <span className="text-muted">a client</span>
        ) : (
          <Link
            to="/jobs/$jobId"
            params={{ jobId: source.job_id }}
            className={classes(aboveRowLink, textLink)}
          >
            a job
          </Link>
        ),
    },
    {
      header: 'Updated',
      align: 'right',
      from: 'sm',
      cell: ({ updated_at }) => <Time value={updated_at} />,
    },
    {
      header: 'Expires',
      align: 'right',
      from: 'lg',
      cell: ({ expires_at }) =>
        expires_at === null ? (
          <span className="text-muted">never</span>
        ) : (
          <Time value={expires_at} />
        ),
    },
    {
      header: 'Actions',
      isHeaderHidden: true,
      align: 'right',
      cell: (memory) => (
        <div className={classes(aboveRowLink, '-my-1.5 inline-flex')}>
          <Menu
            label="Actions for this memory"
            items={[
              {
                label: 'Edit',
                icon: <Pencil />,
                act: () => onDoing({ what: 'edit', memory }),
              },
              {
                label: 'Delete',
                icon: <Trash2 />,
                isDanger: true,
                act: () => onDoing({ what: 'delete', memory }),
              },
            ]}
          />
        </div>
      ),
    },
  ];
}
