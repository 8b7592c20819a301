import { countText } from '../ui/Time.tsx';

/** A count, of which there may be more. */
export const atLeastText = (n: number, isAtLeast: boolean): string =>
  `${countText(n)}${isAtLeast ? '+' : ''}`;
