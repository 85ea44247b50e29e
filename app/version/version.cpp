// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/version/version.h"

#include "commit.inc" // written by resources/cmake/KLineageCommit.cmake at every build

namespace klineage {

const char *versionText()
{
    return KLINEAGE_VERSION KLINEAGE_COMMIT;
}

} // namespace klineage
