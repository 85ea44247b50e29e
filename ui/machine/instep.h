// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/machine/machinepanel.h"

namespace klineage::ui {

/// Keeps the panel in step with who shows the source: a line that is chosen there marks its instructions here, an instruction that is
/// chosen here shows its line there. source has the signal lineChosen(int side, int line) and the function
/// showSourceLine(int side, int line); side 0 is the older state, lines are 1-based. False when it has not: then it is not connected.
template <typename Source>
bool keepInStep(MachinePanel *panel, Source *source)
{
    if constexpr (requires {
                      &Source::lineChosen;
                      &Source::showSourceLine;
                  }) {
        QObject::connect(source, &Source::lineChosen, panel, &MachinePanel::chooseLine);
        QObject::connect(panel, &MachinePanel::sourceLineChosen, source, &Source::showSourceLine);
        return true;
    } else {
        return false;
    }
}

} // namespace klineage::ui
