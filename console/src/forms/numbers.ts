/**
 * The value of a number field; null if empty. Text that is not a number is sent unchanged, so that the
 * platform refuses it with its own message.
 */
export function numberOf(text: string): number | null {
  const plain = text.replaceAll(/[\s,_]/g, '');
  if (plain === '') return null;
  const number = Number(plain);
  return Number.isNaN(number) ? (text as unknown as number) : number;
}
