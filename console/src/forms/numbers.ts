/**
 * What one typed where a number belongs; null for nothing. What is no number is sent as it stands, so
 * that the platform says what is wrong with it.
 */
export function numberOf(text: string): number | null {
  const plain = text.replaceAll(/[\s,_]/g, '');
  if (plain === '') return null;
  const number = Number(plain);
  return Number.isNaN(number) ? (text as unknown as number) : number;
}
