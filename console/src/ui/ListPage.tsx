import type { UseQueryResult } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { Button } from './Button.tsx';
import { Plus } from './icons.tsx';
import { Empty, Loaded } from './Loading.tsx';
import { Page, Section } from './Page.tsx';
import { Pagination, pageSize } from './Pagination.tsx';
import { type Column, Table } from './Table.tsx';
import { useCreating } from './useCreating.ts';

/** A page with a list, page by page unless it has no `total`, and a dialog for a new entry. */
export function ListPage<Row>({
  title,
  query,
  page = 1,
  columns,
  rowKey,
  add,
  form,
  icon,
  none,
  about,
}: {
  title: string;
  query: UseQueryResult<{ data: Row[]; total?: number }>;
  /** From 1. */
  page?: number;
  columns: readonly Column<Row>[];
  rowKey: (row: Row) => string;
  /** The label of the button: `New agent`. */
  add: string;
  form: (close: () => void) => ReactNode;
  icon: ReactNode;
  /** What an empty list is called, and what will be here. */
  none: string;
  about: ReactNode;
}) {
  const navigate = useNavigate();
  const [isCreating, setCreating] = useCreating();
  const create = (
    <Button look="primary" icon={<Plus />} onClick={() => setCreating(true)}>
      {add}
    </Button>
  );
  return (
    <Page title={title} actions={create}>
      <Section flush>
        <Loaded query={query}>
          {({ data, total = 0 }) => (
            <>
              <Table
                caption={title}
                columns={columns}
                rows={data}
                rowKey={rowKey}
                empty={
                  <Empty icon={icon} title={none} action={create}>
                    {about}
                  </Empty>
                }
              />
              {total > pageSize && (
                <Pagination
                  page={page}
                  total={total}
                  onPage={(next) => void navigate({ to: '.', search: { page: next } })}
                />
              )}
            </>
          )}
        </Loaded>
      </Section>
      {isCreating && form(() => setCreating(false))}
    </Page>
  );
}
