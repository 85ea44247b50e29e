// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/plots/roofline/rooflineview.h"

#include "core/why/whystep.h"

#include <algorithm>

namespace klineage::ui {

RooflineView rooflineOf(const lineage::Lineage &lineage, const QString &row)
{
    const why::Chain chain = why::chainTo(lineage, row.toStdString());
    RooflineView view;
    view.path = gate::rooflinePath(chain.states, row.toStdString());
    view.selected = row;
    // States that have no place are left out of the path too.
    const auto isOnPath = [&](const gate::RooflinePoint &point) {
        const auto end = chain.states.begin() + static_cast<std::ptrdiff_t>(chain.length);
        return std::any_of(chain.states.begin(), end,
                           [&](const gate::ChainedTrial &state) { return state.id == point.id; });
    };
    view.length =
        static_cast<std::size_t>(std::count_if(view.path.points.begin(), view.path.points.end(), isOnPath));
    return view;
}

} // namespace klineage::ui
