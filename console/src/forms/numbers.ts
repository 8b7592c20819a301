/** How a number field reads its text. */
interface Reading {
  /** Whether the number may have a part after a point, as amounts of money have. */
  readonly isDecimal?: boolean;
}

/**
 * The value of a number field; null if empty. Text that is not a number is sent unchanged, so that the
 * platform refuses it with its own message. Commas, spaces and underscores group the digits of whole numbers by
 * three; in a decimal number a comma could be the decimal sign, so it is refused there.
 */
export function numberOf(text: string, reading: Reading = {}): number | null {
  const plain = text.trim();
  if (plain === '') return null;
  return readNumber(plain, reading) ?? (plain as unknown as number);
}

/** The number that a text is, if it is one. */
export function readNumber(text: string, { isDecimal = false }: Reading = {}): number | undefined {
  const isGrouped = isDecimal
    ? /^\d{1,3}([ _\u00a0\u202f]\d{3})+(\.\d+)?$/.test(text)
    : /^\d{1,3}([,_ \u00a0\u202f]\d{3})+$/.test(text);
  const number = Number(isGrouped ? text.replaceAll(/[^\d.]/g, '') : text);
  return text === '' || !Number.isFinite(number) ? undefined : number;
}
