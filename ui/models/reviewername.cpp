// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/models/reviewername.h"

#include <QSettings>
#include <QStandardPaths>

#include <pwd.h>
#include <unistd.h>

namespace klineage::ui {

namespace {

const QString authorKey = QStringLiteral("review/author");

QString reviewerFile()
{
    return QStandardPaths::writableLocation(QStandardPaths::GenericConfigLocation)
           + QStringLiteral("/klineage/reviewer.ini");
}

/// What the system calls the person: the full name, else the login; empty when it knows neither.
QString loginName()
{
    if (const passwd *entry = getpwuid(geteuid())) {
        const QString full =
            QString::fromLocal8Bit(entry->pw_gecos).section(QLatin1Char(','), 0, 0).trimmed();
        return full.isEmpty() ? QString::fromLocal8Bit(entry->pw_name) : full;
    }
    return qEnvironmentVariable("USER", qEnvironmentVariable("LOGNAME"));
}

QString nameThatWasSet()
{
    return QSettings(reviewerFile(), QSettings::IniFormat).value(authorKey).toString();
}

} // namespace

QString reviewerName()
{
    const QString set = nameThatWasSet();
    return set.isEmpty() ? loginName() : set;
}

bool isReviewerNameSet()
{
    return !nameThatWasSet().isEmpty();
}

void setReviewerName(const QString &name)
{
    QSettings(reviewerFile(), QSettings::IniFormat).setValue(authorKey, name.trimmed());
}

} // namespace klineage::ui
