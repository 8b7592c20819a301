/** What became of a service outside that was added or changed, for people. */
export const storedWords = (source: {
  readonly name: string;
  readonly status: string;
  readonly skills: readonly unknown[];
}) => {
  const { name, status, skills } = source;
  if (status !== 'available') return `${name} is stored, and could not be read yet`;
  return `${name} has ${skills.length === 1 ? 'one skill' : `${skills.length} skills`}`;
};
