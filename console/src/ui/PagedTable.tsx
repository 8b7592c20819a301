import type { UseQueryResult } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { Loaded } from './Loading.tsx';
import { Section } from './Page.tsx';
import { Pagination, pageSize } from './Pagination.tsx';
import { type Column, Table } from './Table.tsx';

/** A part of a page with a list that has pages of its own. */
export function PagedTable<Row>({
  title,
  query,
  page,
  onPage,
  columns,
  rowKey,
  empty,
}: {
  title: string;
  query: UseQueryResult<{ readonly data: readonly Row[]; readonly total: number }>;
  page: number;
  onPage: (page: number) => void;
  columns: readonly Column<Row>[];
  rowKey: (row: Row) => string;
  /** Shown instead of a table without rows. */
  empty: ReactNode;
}) {
  return (
    <Section title={title} flush>
      <Loaded query={query}>
        {({ data, total }) => (
          <>
            <Table caption={title} rows={data} rowKey={rowKey} columns={columns} empty={empty} />
            {total > pageSize && <Pagination page={page} total={total} onPage={onPage} />}
          </>
        )}
      </Loaded>
    </Section>
  );
}
