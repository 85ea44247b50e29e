// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/story/picture/picture.h"

#include <algorithm>

namespace klineage::ui {

int Picture::itemOf(const QString &key, const QString &row) const
{
    if (key.isEmpty() || row.isEmpty())
        return -1;
    const auto found = std::find_if(items.begin(), items.end(), [&](const PictureItem &item) {
        return item.row == row && item.key == key;
    });
    return found == items.end() ? -1 : static_cast<int>(found - items.begin());
}

QPointF Picture::placeOf(int item) const
{
    for (const PictureMark &mark : marks) {
        if (mark.item == item)
            return mark.at;
    }
    for (const PictureBar &bar : bars) {
        if (bar.item == item)
            return bar.area.center();
    }
    return world.center();
}

} // namespace klineage::ui
