/** The order of the files: as Vitest has it, but those of a project that mostly wait are begun first. */
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Begun last, they would keep the cores idle at the end. */
const waiting = /faults\/(alerts|cluster-(clocks|deploy|network|redis))\.test\.ts$/;

export class LongWaitsFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const byProject = Map.groupBy(sorted, ({ project }) => project);
    return [...byProject.values()].flatMap((those) => [
      ...those.filter(({ moduleId }) => waiting.test(moduleId)),
      ...those.filter(({ moduleId }) => !waiting.test(moduleId)),
    ]);
  }
}
