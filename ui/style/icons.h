// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QIcon>
#include <QString>

namespace klineage::ui {

/// An icon of the window's own set (resources/icons/<name>.svg), drawn in the colours of the current theme at any scale.
/// An unknown name gives an empty icon.
[[nodiscard]] QIcon icon(const QString &name);

/// The application's icon, in its own colours.
[[nodiscard]] QIcon applicationIcon();

} // namespace klineage::ui
