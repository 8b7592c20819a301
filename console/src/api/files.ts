/** Files of the platform: kept, and shown as pictures. */
import { queryOptions } from '@tanstack/react-query';
import { ApiError, consoleHeaders, get, type Schema } from './client.ts';
import { headerText } from './header-text.ts';

type KeptFile = Schema<'File'>;

/** Larger pictures are shown by their names alone. */
const pictureBytesMax = 4 * 1024 * 1024;
const pictures = /^image\/(?:png|jpeg|gif|webp)$/;

/** Keeps a file; of the user, where one is named. */
export async function keepFile(file: File, user: string): Promise<KeptFile> {
  const name = encodeURIComponent(file.name.slice(-200) || 'file');
  const answer = await fetch(`/api/files?name=${name}`, {
    method: 'POST',
    body: file,
    headers: {
      ...consoleHeaders(),
      'content-type': 'application/octet-stream',
      ...(user !== '' && { 'x-user-id': headerText(user) }),
    },
  });
  const kept: unknown = await answer.json().catch(() => null);
  if (!answer.ok) throw new ApiError(answer.status, kept);
  return kept as KeptFile;
}

/** A file, with its picture as a data: url where it is a small one: the page may show no other. */
export const fileQuery = (id: string) =>
  queryOptions({
    queryKey: ['files', id],
    async queryFn() {
      const file = await get('/api/files/{id}', { path: { id } });
      return { file, picture: await pictureOf(file) };
    },
    staleTime: Number.POSITIVE_INFINITY,
    retry: false,
  });

async function pictureOf({ id, media_type, bytes }: KeptFile): Promise<string | null> {
  if (!pictures.test(media_type) || bytes > pictureBytesMax) return null;
  return await bytesOf(id).then(dataUrlOf, () => null);
}

/** The bytes of a file. */
export async function bytesOf(id: string): Promise<Blob> {
  const answer = await fetch(`/api/files/${id}/content`, { headers: consoleHeaders() });
  if (!answer.ok) throw new ApiError(answer.status, await answer.json().catch(() => null));
  return await answer.blob();
}

function dataUrlOf(blob: Blob): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const reader = new FileReader();
  reader.onload = () => resolve(String(reader.result));
  reader.onerror = () => reject(reader.error);
  reader.readAsDataURL(blob);
  return promise;
}
