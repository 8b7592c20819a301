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
