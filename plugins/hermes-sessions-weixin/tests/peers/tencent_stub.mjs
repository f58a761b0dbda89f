// What the published client needs of the program that it is a plugin of.
import os from "node:os";
export const resolvePreferredOpenClawTmpDir = () => process.env.OPENCLAW_STATE_DIR ?? os.tmpdir();
export const withFileLock = async (_path, _options, work) => work();
export const normalizeAccountId = (id) => String(id).toLowerCase();
