/** The windows of statistics: the width of their buckets, and their number. */
export const windows = {
  hour: { seconds: 60, buckets: 60 },
  day: { seconds: 900, buckets: 96 },
} as const;

export type WindowName = keyof typeof windows;

export const windowNames = Object.keys(windows) as readonly WindowName[];
