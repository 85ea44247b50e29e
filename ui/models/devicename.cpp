// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/models/devicename.h"

#include <algorithm>

namespace klineage::ui {

namespace {

constexpr qsizetype shortBeginning = 8; ///< "NVIDIA " is no name, and takes little room

bool isBetweenWords(QChar c)
{
    return c.isSpace() || c == QLatin1Char('-') || c == QLatin1Char('_') || c == QLatin1Char('/');
}

} // namespace

QString distinctName(const QString &name, const QString &other)
{
    const auto common =
        std::mismatch(name.begin(), name.end(), other.begin(), other.end()).first - name.begin();
    qsizetype begin = common;
    while (begin > 0 && !isBetweenWords(name.at(begin - 1)))
        --begin;
    return common == name.size() || begin < shortBeginning ? name : QStringLiteral("…") + name.mid(begin);
}

} // namespace klineage::ui
