/** Bounds of the settings of calls of models; times in milliseconds, `wait_for_provider` in seconds. It imports nothing: each run of a skill loads it. */
export const settingBounds = {
  max_output_tokens: { minimum: 16, maximum: 1_000_000 },
  temperature: { minimum: 0, maximum: 2 },
  timeout_ms: { minimum: 100, maximum: 21_600_000 },
  first_byte_timeout_ms: { minimum: 100, maximum: 3_600_000 },
  wait_for_provider: { minimum: 0, maximum: 86_400 },
  context_tokens: { minimum: 2_000, maximum: 10_000_000 },
} as const;

/** Bytes of the profile of a user. */
export const profileBytes = { minimum: 200, maximum: 8_192 } as const;
/** Bytes of a profile where the agent sets none. */
export const profileBytesDefault = 4_096;
