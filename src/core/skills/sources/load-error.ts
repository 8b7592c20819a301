/** A file of skills that does not load, and why: the platform runs without it, or with its last version that loaded. */
export interface LeftOutSkill {
  /** Absolute path. */
  readonly file: string;
  /** The end of a sentence that begins with the file. */
  readonly reason: string;
  /** Whether the last version that loaded no longer loads either. */
  readonly isFailing?: boolean;
}

/** Why the skills could not be loaded: one sentence that names the file and its fault. */
export class SkillLoadError extends Error {
  override readonly name = 'SkillLoadError';
  /** Absolute path of the file or directory at fault. */
  readonly file: string;

  constructor(file: string, fault: string) {
    super(`${file}: ${fault}`);
    this.file = file;
  }
}
