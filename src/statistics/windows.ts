/** The windows that statistics are shown of: how long each of their buckets is, and how many there are. */
export const windows = {
  hour: { seconds: 60, buckets: 60 },
  day: { seconds: 900, buckets: 96 },
} as const;

export type WindowName = keyof typeof windows;

export const windowNames = Object.keys(windows) as readonly WindowName[];
