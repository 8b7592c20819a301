import { toString as inWords } from 'cronstrue';

/**
 * A cron expression as a sentence, or null when it is none. Where both day fields are restricted
 * either is enough; one that begins with `*` is not restricted, so then both have to match.
 */
export function cronWords(expression: string): string | null {
  const [, , dayOfMonth = '', , dayOfWeek = ''] = expression.trim().split(/\s+/);
  const isEither = !dayOfMonth.startsWith('*') && !dayOfWeek.startsWith('*');
  try {
    const words = inWords(expression, {
      use24HourTimeFormat: true,
      logicalAndDayFields: !isEither,
    });
    return isEither ? words.replace(', and on ', ', or on ') : words;
  } catch {
    return null;
  }
}
