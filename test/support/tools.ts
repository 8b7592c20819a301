/** Tools that tests use and that a checkout does not install (scripts/tools.ts). */
import { installTools, type ToolFolder } from '../../scripts/tools.ts';

/**
 * Whether the tools of a folder are here: they are installed if they are not. Where that fails, as without a network, the
 * run says why and the caller skips its tests; with `CI=true` this rejects.
 */
export async function areToolsHere(folder: ToolFolder): Promise<boolean> {
  try {
    await installTools(folder);
    return true;
  } catch (error) {
    if (process.env['CI'] === 'true') throw error;
    console.warn(
      `Skipped: the tests that need the tools in ${folder}. ${(error as Error).message}`,
    );
    return false;
  }
}
