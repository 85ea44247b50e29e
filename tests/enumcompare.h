// SPDX-License-Identifier: GPL-3.0-or-later
//
// Every test of core and app begins with this (klineage_add_test): QCOMPARE of an enumeration of ours says its name where it fails. Qt Test
// would find our toString() by the argument's namespace, and delete[] the literal that it returns.
#pragma once

#ifdef __cplusplus
#include <QtTest>

#include <string>
#include <type_traits>

namespace klineage::tests {

/// An enumeration with a toString() in its own namespace.
template <typename Enum>
concept NamedEnum = std::is_enum_v<Enum> && std::is_convertible_v<decltype(toString(Enum{})), std::string>;

template <NamedEnum Enum>
QString nameOf(Enum value)
{
    return QString::fromStdString(std::string(toString(value)));
}

} // namespace klineage::tests

namespace QTest {

template <klineage::tests::NamedEnum Enum>
bool qCompare(const Enum &actual, const Enum &expected, const char *actualText, const char *expectedText,
              const char *file, int line)
{
    using klineage::tests::nameOf;
    return qCompare(nameOf(actual), nameOf(expected), actualText, expectedText, file, line);
}

} // namespace QTest
#endif
