/** A registry of npm that has nothing but packed packages, as a registry will have them once they are published. */
import { execFileSync } from 'node:child_process';
import { hash } from 'node:crypto';
import { once } from 'node:events';
import { globSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';

export interface Registry {
  readonly url: string;
  /** Bytes that it has sent so far. */
  sent(): number;
  close(): void;
}

/** Serves the packages of a folder. */
export async function startRegistry(folder: string): Promise<Registry> {
  let sent = 0;
  const tarballs = new Map<string, Buffer>();
  const documents = new Map<string, string>();
  const server = createServer((request, response) => {
    const path = decodeURIComponent((request.url ?? '').slice(1));
    const body = tarballs.get(path) ?? documents.get(path);
    const bytes = Buffer.from(body ?? '{"error":"not found"}');
    sent += bytes.length;
    response.writeHead(body === undefined ? 404 : 200, { 'content-length': bytes.length });
    response.end(bytes);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  for (const file of globSync('*.tgz', { cwd: folder })) {
    const bytes = readFileSync(join(folder, file));
    tarballs.set(file, bytes);
    const manifest = manifestOf(join(folder, file));
    documents.set(manifest.name, documentOf(manifest, bytes, `${url}${file}`));
  }
  return {
    url,
    sent: () => sent,
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}

function manifestOf(file: string): { name: string; version: string } {
  const arguments_ = ['-xOzf', file, 'package/package.json'];
  return JSON.parse(execFileSync('tar', arguments_, { encoding: 'utf8' }));
}

function documentOf(
  manifest: { readonly name: string; readonly version: string },
  bytes: Buffer,
  tarball: string,
): string {
  const { name, version } = manifest;
  const dist = { tarball, integrity: `sha512-${hash('sha512', bytes, 'base64')}` };
  return JSON.stringify({
    name,
    'dist-tags': { latest: version },
    versions: { [version]: { ...manifest, dist } },
  });
}
