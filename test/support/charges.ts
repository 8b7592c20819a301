/** What tests of tokens alone leave open of a call's price. */

/** Of a reservation. */
export const withoutPrice = { model: 'a/model', price: null } as const;
/** Of a charge: it costs nothing. */
export const costless = {
  reservedCost: 0,
  cost: 0,
  estimatedCost: 0,
  isPriced: true,
  counted: [],
} as const;
