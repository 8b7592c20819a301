/** How bytes of strangers are served: as nothing that a browser runs. */
import { isTextType, unknownType } from '../../kernel/media-type.ts';

/** Types that a browser only shows or plays. */
const shown = /^(?:image\/(?:png|jpeg|gif|webp|avif)|audio\/.+|video\/.+)$/;

/** Whether a browser may show the file in its place; it saves every other. */
export const isShownInline = (mediaType: string) => shown.test(mediaType);

/** The media type with which a file is served. */
export function servedType(mediaType: string): string {
  if (isShownInline(mediaType) || mediaType === 'application/pdf') return mediaType;
  return isTextType(mediaType) ? 'text/plain; charset=utf-8' : unknownType;
}
