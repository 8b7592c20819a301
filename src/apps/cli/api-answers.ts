/** Commands that show what the platform answers: as JSON, or for a person. */
import type { ApiRequest, components } from '@skillwright/client';
import { connect, listOf, type PageOptions } from './connection.ts';
import { type Io, writeJson } from './io.ts';
import { type Column, printFields, printRest, printTable } from './print.ts';
import type { TargetOptions } from './profile.ts';

/** What the API answers with, by its name in /openapi.json. */
export type Schema<Name extends keyof components['schemas']> = components['schemas'][Name];

/** Options of every command that reaches a platform. */
export interface ApiOptions extends TargetOptions {
  readonly json?: boolean;
}

/** Options of a list that comes in pages. */
export type ListOptions = ApiOptions & PageOptions;

/** One resource, a line for each of its fields. */
export async function showOne(
  io: Io,
  options: ApiOptions,
  { times = [], ...request }: ApiRequest & { readonly times?: readonly string[] },
): Promise<void> {
  const found = await connect(io, options).request<Record<string, unknown>>(request);
  if (options.json) writeJson(io, found);
  else printFields(io, found, { times });
}

/** Deletes the resource at `path`, which its caller named by `id`. */
export async function deleteOne(
  io: Io,
  options: ApiOptions,
  { id, path }: { readonly id: string; readonly path: string },
): Promise<void> {
  await connect(io, options).request({ method: 'DELETE', path });
  if (options.json) writeJson(io, { id, deleted: true });
  else io.stdout.write(`${id} is deleted\n`);
}

/** The items of an option that lists several, comma-separated; undefined where it was not given. */
export function itemsOf(option: string | undefined): string[] | undefined {
  return option?.split(',').map((item) => item.trim());
}

/** A list, a line for each of its entries; that of the page, where there are pages. */
export async function showList<Item>(
  io: Io,
  { limit, offset, ...options }: ApiOptions & Partial<PageOptions>,
  {
    columns,
    path,
    query,
  }: Pick<ApiRequest, 'path' | 'query'> & { readonly columns: readonly Column<Item>[] },
): Promise<void> {
  const wanted = { path, query: { limit, offset, ...query } };
  const page = await listOf<Item>(connect(io, options), wanted);
  if (options.json) return writeJson(io, page);
  printTable(io, page.data, columns);
  if (offset === undefined) return;
  printRest(io, { shownCount: page.data.length, offset: Number(offset), total: page.total });
}
