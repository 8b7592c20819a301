/** Spellings of limit and offset that are no integers in plain decimal; as they stand in a query. */
const notDecimal = [
  ...['', '%20', '-1', '%2B5', '+5', '01', '1e2', '0x10', '10.5', '10.0', '1_0', '5%20', '%205'],
  ...['Infinity', 'NaN', '1e999', '99999999999999999999', 'ten', 'null', '[5]', '%D9%A3', '1%00'],
  ...['%FF', '5%0A', '1,2', 'true', '0b1', '1n'],
];

export const hostileLimits = [
  ...[...notDecimal, '0'].map((text) => `limit=${text}`),
  'limit=1&limit=2',
  'limit=5&limit=5',
  'limit[]=5',
];

export const hostileOffsets = [
  ...[...notDecimal, '2147483648', '9007199254740992'].map((text) => `offset=${text}`),
  'offset=0&offset=0',
  'offset[]=0',
];
