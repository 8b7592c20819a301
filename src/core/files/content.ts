/** How bytes of strangers are served: as nothing that a browser runs. */
import { isPicture, isTextType, unknownType } from '../../kernel/media-type.ts';

/** Whether a browser may show or play the file in its place; it saves every other. */
export const isShownInline = (mediaType: string) =>
  isPicture(mediaType) || /^(?:audio|video)\/./.test(mediaType);

/** The media type with which a file is served. */
export function servedType(mediaType: string): string {
  if (isShownInline(mediaType) || mediaType === 'application/pdf') return mediaType;
  return isTextType(mediaType) ? 'text/plain; charset=utf-8' : unknownType;
}
