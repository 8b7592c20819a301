/** Parses request bodies: JSON in valid UTF-8, within limits (docs/decisions/json-and-lists.md). */
import { isUtf8 } from 'node:buffer';
import sjson from 'secure-json-parse';
import { invalid } from '../../kernel/errors.ts';
import { isDeeperThan, jsonTextFault, nestingMax } from '../../kernel/text.ts';

/** Bytes of a request body. */
export const bodyBytesMax = 1024 * 1024;

const byteOrderMark = 0xef;
/** What secure-json-parse says of valid JSON that it refuses. */
const forbiddenKeys = 'Object contains forbidden prototype property';
/** A longer text is parsed only if it is not too deep. */
const shortCharsMax = 16_384;

/** Parses a body; undefined for an empty one, because only the route knows whether it needs one. */
export function parseJsonBody(bytes: Buffer): unknown {
  if (bytes.length === 0) return undefined;
  if (!isUtf8(bytes)) throw invalid('body', 'is not valid UTF-8');
  if (bytes[0] === byteOrderMark) throw invalid('body', 'must not begin with a byte order mark');
  const text = bytes.toString('utf8');
  if (text.length > shortCharsMax && isDeeperThan(text, nestingMax)) {
    throw invalid('body', `is nested deeper than ${nestingMax} levels`);
  }
  let value: unknown;
  try {
    // Refuses __proto__ and constructor.prototype, escaped or not.
    value = sjson.parse(text, { protoAction: 'error', constructorAction: 'error' });
  } catch (error) {
    const isForbidden = (error as Error).message === forbiddenKeys;
    throw invalid(
      'body',
      isForbidden ? 'has __proto__ or constructor.prototype' : 'is not valid JSON',
    );
  }
  const fault = jsonTextFault(text);
  if (fault !== null) throw invalid('body', fault);
  return value;
}
