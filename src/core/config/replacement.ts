/** How the command `start --replace` and a running platform speak: one request and one answer, each a line of JSON. */
import { join } from 'node:path';

/** A program that is to take the place of the running one. */
export interface ReplaceRequest {
  /** The path of Node. */
  readonly program: string;
  /** Options of Node, and the script. */
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
}

export type ReplaceAnswer =
  | { readonly status: 'replaced'; readonly pid: number }
  | { readonly status: 'refused'; readonly reason: string };

/** The socket on which a running platform takes such requests; its user alone can open it. */
export function replaceSocket({ dataDir, port }: { dataDir: string; port: number }): string {
  return join(dataDir, `replace-${port}.sock`);
}
